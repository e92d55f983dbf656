// SPDX-License-Identifier: Apache-2.0
// What the four FP8 types share. Each is a type of its own (e4m3.hpp, e5m2.hpp, e4m3fnuz.hpp, e5m2fnuz.hpp), so that a
// payload of one encoding cannot be read as another; this base holds the operations, made from a description of the
// bits.
//
//     type       exponent  mantissa  bias  max    smallest  infinity  NaN codes
//     e4m3       4         3         7     448    2^-9      no        7F FF
//     e5m2       5         2         15    57344  2^-16     7C FC     7D-7F FD-FF
//     e4m3fnuz   4         3         8     240    2^-10     no        80 (no -0)
//     e5m2fnuz   5         2         16    57344  2^-17     no        80 (no -0)
//
// e4m3 and e5m2 are those of the OCP 8-bit floating point specification (OFP8) 1.0; the fnuz pair is what CDNA3
// (MI300) computes with.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/minifloat.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {

template <class Derived, class Format>
struct float8 {
  static_assert(minifloat_traits<Format>::width == 8, "an FP8 format has 1 + exponent_bits + mantissa_bits = 8 bits");

  std::uint8_t bits;

  static constexpr int exponent_bits = Format::exponent_bits;
  static constexpr int mantissa_bits = Format::mantissa_bits;
  static constexpr int bias = Format::bias;
  static constexpr bool has_infinity = Format::has_infinity;
  static constexpr bool fnuz = Format::fnuz;
  static constexpr std::uint8_t max_code = Format::max_code;  // of the largest finite value, Derived::max
  static constexpr std::uint8_t nan_code = Format::nan_code;  // of the NaN that nearest_even returns

  OCTAVO_HD static constexpr Derived from_bits(std::uint8_t bits) { return Derived{{bits}}; }

  // Round to nearest, ties to even. The default saturates, which is how a quantiser uses it.
  template <overflow O = overflow::saturate>
  OCTAVO_HD static constexpr Derived nearest_even(float x) {
    return from_bits(static_cast<std::uint8_t>(encode<Format, O>(x)));
  }

  // The value that nearest_even(x) stands for, bit for bit, in fewer steps. A NaN gives the NaN that decode gives.
  template <overflow O = overflow::saturate>
  OCTAVO_HD static constexpr float round(float x) {
    return detail::round<Format, O>(x);
  }

  OCTAVO_HD static constexpr float decode(std::uint8_t bits) { return detail::decode<Format>(bits); }
  OCTAVO_HD explicit constexpr operator float() const { return decode(bits); }
  OCTAVO_HD constexpr bool is_nan() const { return detail::nan_mask<Format>(bits) != 0; }
};

}  // namespace detail
OCTAVO_END_NAMESPACE
