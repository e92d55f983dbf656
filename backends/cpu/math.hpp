// SPDX-License-Identifier: Apache-2.0
// exp2 and tanh without branches or calls, so that loops over a tile become vector code on any target.
#pragma once

#include <octavo/backends/cpu/target.hpp>
#include <octavo/numeric/float32.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

/// 2^x. Relative error below 2^-22.5 for x in [-126, 127]; 0 below -126 (no subnormal results: they are slow and the
/// numerics have no use for them), about 2^127.5 above, NaN stays NaN.
inline float exp2(float x) {
  // The nearest integer, by an addition that pushes the fraction out of the mantissa.
  constexpr float shifter = 0x1.8p23f;
  const float low = x < -127.0f ? -127.0f : x;
  const float y = low > 127.49f ? 127.49f : low;
  const float shifted = y + shifter;
  const float f = y - (shifted - shifter);  // [-1/2, 1/2]
  // Taylor coefficients ln(2)^k / k!; the first term left out, ln(2)^8 / 8! / 2^8, is below 2^-27 of the result.
  float p = 1.5252733804059840e-5f;
  p = p * f + 1.5403530393381608e-4f;
  p = p * f + 1.3333558146428443e-3f;
  p = p * f + 9.6181291076284772e-3f;
  p = p * f + 5.5504108664821580e-2f;
  p = p * f + 2.4022650695910071e-1f;
  p = p * f + 6.9314718055994531e-1f;
  p = p * f + 1.0f;
  // The integer n stands in the low bits of `shifted`; moved into the exponent field it makes 2^n.
  const std::uint32_t bits = detail::bit_cast<std::uint32_t>(shifted);
  const std::uint32_t scale = (bits << 23) + (std::uint32_t{127} << 23);
  const float result = p * detail::bit_cast<float>(scale);
  return x < -126.0f ? 0.0f : result;
}

/// tanh(x) = 1 - 2 / (e^2x + 1), by a series where that would cancel.
inline float tanh(float x) {
  const float magnitude = x < 0 ? -x : x;
  const float t = 1.0f - 2.0f / (exp2(magnitude * 2.88539008177792681f) + 1.0f);
  const float x2 = x * x;
  const float small = magnitude * (1.0f + x2 * (-0.333333333f + x2 * (0.133333333f + x2 * -0.0539682540f)));
  const float r = magnitude < 0.25f ? small : t;
  return x < 0 ? -r : r;
}

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
