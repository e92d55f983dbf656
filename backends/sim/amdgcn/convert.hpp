// SPDX-License-Identifier: Apache-2.0
// backends/hip/amdgcn/convert.hpp on the host.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/minifloat.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

/// The nearest float; the device's is within 1 unit in the last place.
inline float exp2(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.0f : y;
}

template <class F>
std::uint32_t pack_float8(float a, float b, float c, float d, float factor) {
  const auto code = [factor](float x) -> std::uint32_t {
    return F::template nearest_even<overflow::non_finite>(x * factor).bits;
  };
  return code(a) | code(b) << 8 | code(c) << 16 | code(d) << 24;
}
template <class F>
void unpack_float8(std::uint32_t word, float (&x)[4]) {
  for (int i = 0; i < 4; ++i) x[i] = F::decode(static_cast<std::uint8_t>(word >> 8 * i));
}

inline std::uint32_t perm(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  const std::uint64_t bytes = low | static_cast<std::uint64_t>(high) << 32;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i)
    result |= static_cast<std::uint32_t>(bytes >> 8 * (selectors >> 8 * i & 7) & 0xff) << 8 * i;
  return result;
}

inline float tanh(float x) { return std::tanh(x); }

inline float multiply(float a, float b) {
  const volatile float product = a * b;
  return product;
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
