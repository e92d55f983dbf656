// SPDX-License-Identifier: Apache-2.0
// 2^x and tanh without a branch or a call, so that loops over a tile become vector code on a host. (Kokkos' own exp2
// changed its name with 3.7, and compilers do not vectorise calls of it.)
#pragma once

#include <octavo/backends/kokkos/version.hpp>
#include <octavo/numeric/float32.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// ln(2)^k / k!, the coefficients of 2^f = e^(f ln 2).
constexpr float exp2_coefficient(int k) {
  double c = 1;
  for (int n = 1; n <= k; ++n) c *= 0.69314718055994530942 / n;
  return static_cast<float>(c);
}

/// 2^x for x in [-126, 127], to 2^-22; 0 below (subnormal results are slow and the numerics have no use for them), held
/// at about 2^127.5 above. NaN stays NaN.
KOKKOS_INLINE_FUNCTION float exp2(float x) {
  // To add 1.5 * 2^23 leaves no bits for a fraction: the sum's low bits are the integer nearest to x.
  constexpr float integers = 12582912.0f;
  float held = x < -127.0f ? -127.0f : x;
  held = held > 127.49f ? 127.49f : held;
  const float rounded = held + integers;
  const float f = held - (rounded - integers);  // in [-1/2, 1/2]: the first term left out is below 2^-27
  constexpr float c1 = exp2_coefficient(1), c2 = exp2_coefficient(2), c3 = exp2_coefficient(3),
                  c4 = exp2_coefficient(4), c5 = exp2_coefficient(5), c6 = exp2_coefficient(6),
                  c7 = exp2_coefficient(7);
  const float tail = c2 + f * (c3 + f * (c4 + f * (c5 + f * (c6 + f * c7))));
  const float power = 1.0f + f * (c1 + f * tail);
  // The integer in the exponent field is 2^integer.
  const std::uint32_t exponent = detail::bit_cast<std::uint32_t>(rounded) + detail::float_bias;
  const float scaled = power * detail::bit_cast<float>(exponent << detail::float_mantissa_bits);
  return x < -126.0f ? 0.0f : scaled;
}

/// tanh x = (1 - e^-2x) / (1 + e^-2x) for x > 0, and the start of its series where that would cancel.
KOKKOS_INLINE_FUNCTION float tanh(float x) {
  constexpr float two_log2_e = 2.88539008177792681f;
  const float size = x < 0 ? -x : x, square = x * x;
  const float t = exp2(-two_log2_e * size);
  const float far = (1.0f - t) / (1.0f + t);
  const float near = size * (1.0f - square * (1.0f / 3 - square * (2.0f / 15 - square * (17.0f / 315))));
  const float result = size < 0.25f ? near : far;
  return x < 0 ? -result : result;
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
