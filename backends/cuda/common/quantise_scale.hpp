// SPDX-License-Identifier: Apache-2.0
// Scales and payload bytes, without branches.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/numeric/e8m0.hpp>
#include <octavo/numeric/minifloat.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// e8m0::for_amax(amax, E::max) for the bits of a finite amax: what a full mantissa has above that of E::max, added,
/// carries into the exponent if amax's is larger. For subnormal numbers, whose exponents are not in their bits, both
/// give the smallest scale.
template <class E>
OCTAVO_DEVICE constexpr e8m0 scale_for(std::uint32_t amax) {
  constexpr std::uint32_t max = detail::bit_cast<std::uint32_t>(E::max);
  constexpr std::uint32_t carry = detail::float_mantissa_mask - (max & detail::float_mantissa_mask);
  constexpr std::uint32_t exponent = (max >> detail::float_mantissa_bits) - detail::float_bias;
  const std::uint32_t raised = detail::larger((amax + carry) >> detail::float_mantissa_bits, exponent);
  return {static_cast<std::uint8_t>(amax == 0 ? e8m0::bias : raised - exponent)};
}

/// 1 / scale. As no amax gives a scale above 2^120, it is a normal number.
OCTAVO_DEVICE constexpr float reciprocal_of(e8m0 scale) {
  return detail::bit_cast<float>((2u * e8m0::bias - scale.bits) << detail::float_mantissa_bits);
}

/// What a column image holds where an element is not finite: -0, which multiplies as a zero does.
inline constexpr std::uint8_t nonfinite_in_columns = 0x80;

/// The highest bit of every byte of a word that is an infinity or a NaN.
template <class E>
OCTAVO_DEVICE constexpr std::uint32_t nonfinite_bytes(std::uint32_t bytes) {
  constexpr std::uint32_t to_high_bit = 0x80 - (E::max_code + 1);
  return ((bytes & 0x7f7f7f7fu) + to_high_bit * 0x01010101u) & 0x80808080u;
}
/// A word as a column image holds it where a tile has such bytes: they are -0, and every other zero is +0.
template <class E>
OCTAVO_DEVICE constexpr std::uint32_t marked_bytes(std::uint32_t bytes) {
  const std::uint32_t nonfinite = nonfinite_bytes<E>(bytes) >> 7;
  const std::uint32_t nonzero = ((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) >> 7 & 0x01010101u;
  return (bytes & (nonzero & ~nonfinite) * 0xff) | nonfinite * nonfinite_in_columns;
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
