// SPDX-License-Identifier: Apache-2.0
// bfloat16: the upper half of binary32, with its range, its infinities and subnormals, and 8 significant bits.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float32.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

struct bf16 {
  std::uint16_t bits;

  static constexpr const char* name = "bf16";
  static constexpr int exponent_bits = 8;
  static constexpr int mantissa_bits = 7;
  static constexpr int bias = 127;
  static constexpr bool has_infinity = true;
  static constexpr float max = 0x1.fep127f;  // (2 - 2^-7) * 2^127, about 3.39e38
  static constexpr std::uint16_t max_code = 0x7f7f;
  static constexpr std::uint16_t nan_code = 0x7fc0;  // of the NaN that nearest_even returns

  OCTAVO_HD static constexpr bf16 from_bits(std::uint16_t bits) { return bf16{bits}; }

  // Round to nearest, ties to even. Beyond the range it is infinity; a NaN gives nan_code, so that none loses its
  // payload in the lower half and becomes an infinity.
  OCTAVO_HD static constexpr bf16 nearest_even(float x) {
    return from_bits(static_cast<std::uint16_t>(round_word(detail::bit_cast<std::uint32_t>(x)) >> 16));
  }

  // The value of nearest_even(x), bit for bit. Straight-line code, like nearest_even: loops over it are vectorised.
  OCTAVO_HD static constexpr float round(float x) {
    return detail::bit_cast<float>(round_word(detail::bit_cast<std::uint32_t>(x)));
  }

  OCTAVO_HD static constexpr float decode(std::uint16_t bits) {
    return detail::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  OCTAVO_HD explicit constexpr operator float() const { return decode(bits); }
  OCTAVO_HD constexpr bool is_nan() const { return (bits & 0x7fff) > 0x7f80; }

 private:
  OCTAVO_HD static constexpr std::uint32_t round_word(std::uint32_t word) {
    // Just under half a unit, plus the last kept bit: a tie carries only into an odd number.
    const std::uint32_t rounded = (word + 0x7fffu + ((word >> 16) & 1u)) & 0xffff'0000u;
    const std::uint32_t nan = detail::mask_less(detail::float_exponent_mask, word & detail::float_magnitude_mask);
    return detail::select(nan, detail::float_nan_bits, rounded);
  }
};

static_assert(sizeof(bf16) == 2 && bf16::decode(bf16::max_code) == bf16::max);

OCTAVO_END_NAMESPACE
