// SPDX-License-Identifier: Apache-2.0
// Bit-level facts about binary32, the type that every narrow format is converted from and to.
#pragma once

#include <octavo/config.hpp>

#include <cstdint>
#include <limits>

static_assert(std::numeric_limits<float>::is_iec559 && sizeof(float) == 4,
              "octavo needs float to be IEEE 754 binary32");

OCTAVO_BEGIN_NAMESPACE
namespace detail {

// std::bit_cast is a constexpr host function, which device code may call only with a compiler flag; the builtin
// behind it is free of that.
template <class To, class From>
OCTAVO_HD constexpr To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast keeps every bit: both types must have one size");
  return __builtin_bit_cast(To, from);
}

// Binary32 is sign (1), exponent (8, bias 127), mantissa (23).
inline constexpr int float_mantissa_bits = 23;
inline constexpr int float_bias = 127;
inline constexpr std::uint32_t float_sign_mask = 0x8000'0000u;
inline constexpr std::uint32_t float_magnitude_mask = 0x7fff'ffffu;
inline constexpr std::uint32_t float_exponent_mask = 0x7f80'0000u;  // also the bits of +infinity
inline constexpr std::uint32_t float_mantissa_mask = 0x007f'ffffu;
inline constexpr std::uint32_t float_nan_bits = 0x7fc0'0000u;  // the one NaN that this library's conversions return

OCTAVO_HD constexpr float float_nan() { return bit_cast<float>(float_nan_bits); }
OCTAVO_HD constexpr float float_infinity() { return bit_cast<float>(float_exponent_mask); }

// Comparisons as masks, all ones for true, and a select by them; operands are below 2^31. A conditional expression
// would read better, but compilers sink the store that follows into its two arms, and then do not vectorise the loop.
OCTAVO_HD constexpr std::uint32_t mask_less(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(a - b) >> 31);
}
OCTAVO_HD constexpr std::uint32_t select(std::uint32_t mask, std::uint32_t if_set, std::uint32_t if_clear) {
  return (if_set & mask) | (if_clear & ~mask);
}

}  // namespace detail

// 2^exponent, exact. Binary32 has it for exponents in [-149, 127] (subnormal below -126); a smaller exponent gives 0, a
// larger one +infinity.
OCTAVO_HD constexpr float exp2i(int exponent) {
  constexpr int min_subnormal = 1 - detail::float_bias - detail::float_mantissa_bits;  // -149
  constexpr int min_normal = 1 - detail::float_bias;                                   // -126
  if (exponent > detail::float_bias) return detail::float_infinity();
  if (exponent < min_subnormal) return 0.0f;
  if (exponent < min_normal) return detail::bit_cast<float>(1u << (exponent - min_subnormal));
  return detail::bit_cast<float>(static_cast<std::uint32_t>(exponent + detail::float_bias)
                                 << detail::float_mantissa_bits);
}

/// x, but NaN for an infinity: recipes treat the two alike, since not every payload can hold an infinity. The difference is
/// 0 for every finite x, so that this is one addition in a vector loop.
OCTAVO_HD constexpr float nan_unless_finite(float x) { return x + (x - x); }

OCTAVO_END_NAMESPACE
