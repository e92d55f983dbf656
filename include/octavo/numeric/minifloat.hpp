// SPDX-License-Identifier: Apache-2.0
// Conversion between binary32 and the floating-point formats that fit in it with room to spare: sign, exponent,
// mantissa, gradual underflow. One implementation serves the four FP8 formats and binary16.
//
// All of it is straight-line code (integer and float operations, selects), so that a plain loop over an array is
// vectorised by the compiler, and every function is constexpr and runs on the device.
//
// The rounding mode must be to-nearest-even, the default, and sums must not be reassociated, which would remove the
// addition that rounds. Contraction into fused multiply-adds and flushing of binary32 subnormals change nothing: no
// product is added to anything, and no intermediate value is subnormal unless the result is zero.
#pragma once

// GCC says so by itself, Clang only for -ffast-math as a whole.
#if defined(__ASSOCIATIVE_MATH__) || (defined(__clang__) && defined(__FAST_MATH__))
#error "octavo rounds by adding and subtracting: compile with -fno-associative-math after -ffast-math"
#endif

#include <octavo/config.hpp>
#include <octavo/numeric/float32.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

// What becomes of a value whose magnitude rounds to more than the format's largest finite one. NaN stays NaN in both.
enum class overflow {
  saturate,    // the largest finite value with the same sign, for infinities too (as the hardware's `satfinite`)
  non_finite,  // infinity where the format has one, else NaN
};

namespace detail {

// A format is described by a type with these static constexpr members (a type and not a structural value, which would
// be shorter, because nvcc 13.0 writes invalid host code for template arguments of class type):
//
//     int           exponent_bits, mantissa_bits, bias
//     std::uint32_t max_code      magnitude code of the largest finite value; the next code is where overflow goes
//     std::uint32_t nan_code      the NaN that conversions produce
//     bool          has_infinity  then max_code + 1 is infinity; without, it is NaN
//     bool          fnuz          "finite, no negative zero": the code that would be -0 is the only NaN
//
// A code is a sign bit, exponent_bits and mantissa_bits, of value (-1)^s * 2^(e - bias) * 1.m, or for e = 0 of value
// (-1)^s * 2^(1 - bias) * 0.m; a magnitude code is a code without its sign bit.

// The constants that follow from a format, in binary32's terms.
template <class Format>
struct minifloat_traits {
  static constexpr int width = 1 + Format::exponent_bits + Format::mantissa_bits;
  static constexpr std::uint32_t sign_code = 1u << (width - 1);
  static constexpr int mantissa_shift = float_mantissa_bits - Format::mantissa_bits;
  static constexpr int bias_gap = float_bias - Format::bias;  // binary32's exponent field minus the format's
  static constexpr std::uint32_t min_normal_code = 1u << Format::mantissa_bits;
  static constexpr std::uint32_t min_normal_bits = static_cast<std::uint32_t>(bias_gap + 1) << float_mantissa_bits;

  // Binary32 bits of a magnitude code of a normal value: the same bits further left, and another bias.
  OCTAVO_HD static constexpr std::uint32_t normal_bits(std::uint32_t magnitude_code) {
    return (magnitude_code << mantissa_shift) + (static_cast<std::uint32_t>(bias_gap) << float_mantissa_bits);
  }
  static constexpr std::uint32_t max_bits = normal_bits(Format::max_code);
  static constexpr std::uint32_t overflow_bits = normal_bits(Format::max_code + 1);  // as if it were a finite value

  static_assert(Format::mantissa_bits >= 1 && Format::mantissa_bits <= 21 && bias_gap > float_mantissa_bits,
                "minifloat needs two spare mantissa bits, and an exponent range well inside that of binary32");
};

// Single instructions on vector units, which on x86 compare signed integers; operands are below 2^31.
OCTAVO_HD constexpr std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
}
OCTAVO_HD constexpr std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a) > static_cast<std::int32_t>(b) ? a : b;
}

// |x| rounded to the format, as a float addition leaves it. With q the spacing of the format's values at |x|,
//
//     anchor = 2^23 q,   sum = anchor + |x|,
//
// the sum lies where binary32 itself has spacing q, so that the adder does the rounding, ties to even included. Below
// the smallest normal value q stops shrinking, which is all that gradual underflow is.
struct anchored {
  float anchor;
  float sum;
  std::uint32_t exponent;  // of |x| or the smallest normal value, in place in the bits of a float

  OCTAVO_HD constexpr float value() const { return sum - anchor; }  // exact
  OCTAVO_HD constexpr std::uint32_t quanta() const {
    return bit_cast<std::uint32_t>(sum) - bit_cast<std::uint32_t>(anchor);
  }
};

template <class Format, overflow O>
OCTAVO_HD constexpr anchored round_magnitude(std::uint32_t magnitude) {
  using traits = minifloat_traits<Format>;
  // Clamping first commutes with rounding, takes care of infinity, and keeps the anchor in range.
  constexpr std::uint32_t limit = O == overflow::saturate ? traits::max_bits : traits::overflow_bits;
  const std::uint32_t clamped = smaller(magnitude, limit);
  const std::uint32_t exponent = larger(clamped & float_exponent_mask, traits::min_normal_bits);
  constexpr std::uint32_t anchor_gap = static_cast<std::uint32_t>(traits::mantissa_shift) << float_mantissa_bits;
  const float anchor = bit_cast<float>(exponent + anchor_gap);
  return {anchor, anchor + bit_cast<float>(clamped), exponent};
}

// The code of the value nearest to x, ties to even.
template <class Format, overflow O>
OCTAVO_HD constexpr std::uint32_t encode(float x) {
  using traits = minifloat_traits<Format>;
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & float_magnitude_mask;
  const anchored rounded = round_magnitude<Format, O>(magnitude);
  // The quanta count from 2^mantissa_bits for a normal value, which is one step of the exponent field; a mantissa that
  // rounds up to the next power of two carries into that field by itself.
  const std::uint32_t base = (rounded.exponent - traits::min_normal_bits) >> traits::mantissa_shift;
  const std::uint32_t code = base + rounded.quanta();
  std::uint32_t sign = (bits & float_sign_mask) >> (32 - traits::width);
  if constexpr (Format::fnuz) sign &= ~mask_less(code, 1);  // zero has no sign
  return select(mask_less(float_exponent_mask, magnitude), Format::nan_code, code | sign);
}

// The value nearest to x: bit for bit decode(encode(x)), without the way through the code.
template <class Format, overflow O>
OCTAVO_HD constexpr float round(float x) {
  using traits = minifloat_traits<Format>;
  const std::uint32_t bits = bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & float_magnitude_mask;
  std::uint32_t rounded = bit_cast<std::uint32_t>(round_magnitude<Format, O>(magnitude).value());
  std::uint32_t sign = bits & float_sign_mask;
  if constexpr (Format::fnuz) sign &= ~mask_less(rounded, 1);  // zero has no sign
  std::uint32_t nan = mask_less(float_exponent_mask, magnitude);
  if constexpr (O == overflow::non_finite) {
    const std::uint32_t overflowed = mask_less(traits::max_bits, rounded);
    if constexpr (Format::has_infinity) rounded = select(overflowed, float_exponent_mask, rounded);
    if constexpr (!Format::has_infinity) nan |= overflowed;
  }
  return bit_cast<float>(select(nan, float_nan_bits, rounded | sign));
}

// All ones for a NaN code, else 0.
template <class Format>
OCTAVO_HD constexpr std::uint32_t nan_mask(std::uint32_t code) {
  const std::uint32_t magnitude_code = code & (minifloat_traits<Format>::sign_code - 1);
  if constexpr (Format::fnuz) return mask_less(code ^ Format::nan_code, 1);
  return mask_less(Format::max_code + (Format::has_infinity ? 1 : 0), magnitude_code);
}

// The value of a code, exact. NaN codes give the one NaN of binary32 named in float32.hpp.
template <class Format>
OCTAVO_HD constexpr float decode(std::uint32_t code) {
  using traits = minifloat_traits<Format>;
  const std::uint32_t magnitude_code = code & (traits::sign_code - 1);
  const std::uint32_t sign = (code & traits::sign_code) << (32 - traits::width);
  // A subnormal code counts quanta. Shifting it into a binary32 subnormal and multiplying by a power of two would give
  // the same value and save a select, but not on a thread that flushes subnormals, as training loops often do.
  constexpr float quantum = exp2i(1 - Format::bias - Format::mantissa_bits);
  const float subnormal = static_cast<float>(static_cast<std::int32_t>(magnitude_code)) * quantum;
  const std::uint32_t normal = traits::normal_bits(magnitude_code);
  std::uint32_t magnitude = select(mask_less(magnitude_code, traits::min_normal_code),  //
                                   bit_cast<std::uint32_t>(subnormal), normal);
  if constexpr (Format::has_infinity) {
    magnitude = select(mask_less(Format::max_code, magnitude_code), float_exponent_mask, magnitude);
  }
  return bit_cast<float>(select(nan_mask<Format>(code), float_nan_bits, magnitude | sign));
}

}  // namespace detail
OCTAVO_END_NAMESPACE
