// SPDX-License-Identifier: Apache-2.0
// IEEE 754 binary16: 11 significant bits, a range to 65504, infinities and subnormals.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/minifloat.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {
struct fp16_format {
  static constexpr int exponent_bits = 5;
  static constexpr int mantissa_bits = 10;
  static constexpr int bias = 15;
  static constexpr std::uint32_t max_code = 0x7bff;
  static constexpr std::uint32_t nan_code = 0x7e00;
  static constexpr bool has_infinity = true;
  static constexpr bool fnuz = false;
};
}  // namespace detail

struct fp16 {
  std::uint16_t bits;

  static constexpr const char* name = "fp16";
  static constexpr int exponent_bits = detail::fp16_format::exponent_bits;
  static constexpr int mantissa_bits = detail::fp16_format::mantissa_bits;
  static constexpr int bias = detail::fp16_format::bias;
  static constexpr bool has_infinity = detail::fp16_format::has_infinity;
  static constexpr float max = 65504.0f;
  static constexpr std::uint16_t max_code = detail::fp16_format::max_code;
  static constexpr std::uint16_t nan_code = detail::fp16_format::nan_code;  // of the NaN that nearest_even returns

  OCTAVO_HD static constexpr fp16 from_bits(std::uint16_t bits) { return fp16{bits}; }

  // Round to nearest, ties to even. As in IEEE 754, infinity from 65520 on, which is halfway from max to 2^16.
  OCTAVO_HD static constexpr fp16 nearest_even(float x) {
    return from_bits(static_cast<std::uint16_t>(detail::encode<detail::fp16_format, overflow::non_finite>(x)));
  }

  // The value of nearest_even(x), bit for bit. Straight-line code, like nearest_even: loops over it are vectorised.
  OCTAVO_HD static constexpr float round(float x) {
    return detail::round<detail::fp16_format, overflow::non_finite>(x);
  }

  OCTAVO_HD static constexpr float decode(std::uint16_t bits) { return detail::decode<detail::fp16_format>(bits); }
  OCTAVO_HD explicit constexpr operator float() const { return decode(bits); }
  OCTAVO_HD constexpr bool is_nan() const { return detail::nan_mask<detail::fp16_format>(bits) != 0; }
};

static_assert(sizeof(fp16) == 2 && fp16::decode(fp16::max_code) == fp16::max);

OCTAVO_END_NAMESPACE
