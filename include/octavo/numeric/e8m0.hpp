// SPDX-License-Identifier: Apache-2.0
// E8M0, the scale type of the OCP microscaling (MX) formats 1.0: a power of two, 2^(bits - 127), from 2^-127 to 2^127.
// There is no zero, no sign and no infinity; FF is NaN.
//
// Scales here round up. A block divided by a scale that was rounded to nearest may exceed the payload's largest value
// and saturate, and it is the outlier, the element that matters most, that would be cut.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float32.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

struct e8m0 {
  std::uint8_t bits;

  static constexpr const char* name = "e8m0";
  static constexpr int bias = 127;
  static constexpr float min = 0x1p-127f;
  static constexpr float max = 0x1p127f;
  static constexpr std::uint8_t nan_code = 0xff;

  OCTAVO_HD static constexpr e8m0 from_bits(std::uint8_t bits) { return e8m0{bits}; }

  // 2^exponent; below -127 it is 2^-127 (still rounded up), above 127 it is NaN.
  OCTAVO_HD static constexpr e8m0 from_exponent(int exponent) {
    if (exponent < -bias) return from_bits(0);
    if (exponent > bias) return from_bits(nan_code);
    return from_bits(static_cast<std::uint8_t>(exponent + bias));
  }

  // The smallest power of two that is >= x. Whatever lies at or below 2^-127, zero and negative numbers included, gives
  // 2^-127; what lies above 2^127, infinity included, gives NaN, as NaN does.
  OCTAVO_HD static constexpr e8m0 round_up(float x) {
    const std::uint32_t word = detail::bit_cast<std::uint32_t>(x);
    if ((word & detail::float_magnitude_mask) > detail::float_exponent_mask) return from_bits(nan_code);
    // Compared as integers, since min is subnormal and a thread may flush those; a set sign makes the word negative.
    if (static_cast<std::int32_t>(word) <= detail::bit_cast<std::int32_t>(min)) return from_bits(0);
    const significand s = decompose(word);
    return from_exponent(s.exponent + (s.mantissa > implicit_bit ? 1 : 0));
  }

  // The scale of a block with largest magnitude `amax`: the smallest power of two with amax / scale <= format_max, that
  // is exponent = ceil(log2(amax / format_max)). Exact: the quotient, which would round, is never formed; both
  // exponents are subtracted and both mantissas compared. A block of zeros gets 1, so that its payload is zero and not
  // NaN; an infinity or NaN in the block makes the scale NaN. amax >= 0 (a sign is ignored), format_max > 0 and finite.
  OCTAVO_HD static constexpr e8m0 for_amax(float amax, float format_max) {
    const std::uint32_t word = detail::bit_cast<std::uint32_t>(amax) & detail::float_magnitude_mask;
    if (word >= detail::float_exponent_mask) return from_bits(nan_code);
    if (word == 0) return from_exponent(0);
    const significand a = decompose(word);
    const significand m = decompose(detail::bit_cast<std::uint32_t>(format_max));
    return from_exponent(a.exponent - m.exponent + (a.mantissa > m.mantissa ? 1 : 0));
  }

  // For NaN: 128.
  OCTAVO_HD constexpr int exponent() const { return bits - bias; }
  OCTAVO_HD constexpr bool is_nan() const { return bits == nan_code; }

  // Exact; 2^-127 is a subnormal of binary32.
  OCTAVO_HD explicit constexpr operator float() const { return is_nan() ? detail::float_nan() : exp2i(exponent()); }

  // 1 / scale, exact as well, for quantisers: they multiply. (The reciprocal of 2^127 is the subnormal 2^-127.)
  OCTAVO_HD constexpr float reciprocal() const { return is_nan() ? detail::float_nan() : exp2i(-exponent()); }

 private:
  static constexpr std::uint32_t implicit_bit = 1u << detail::float_mantissa_bits;

  // x = mantissa * 2^(exponent - 23) with implicit_bit <= mantissa < 2 * implicit_bit, of a finite x > 0 given as bits.
  struct significand {
    int exponent;
    std::uint32_t mantissa;
  };
  OCTAVO_HD static constexpr significand decompose(std::uint32_t word) {
    const int field = static_cast<int>(word >> detail::float_mantissa_bits);
    std::uint32_t mantissa = word & detail::float_mantissa_mask;
    if (field > 0) return {field - detail::float_bias, mantissa | implicit_bit};
    int exponent = 1 - detail::float_bias;  // a subnormal number: normalise
    for (; mantissa < implicit_bit; mantissa <<= 1) --exponent;
    return {exponent, mantissa};
  }
};

static_assert(sizeof(e8m0) == 1);

OCTAVO_END_NAMESPACE
