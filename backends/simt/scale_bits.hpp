// SPDX-License-Identifier: Apache-2.0
// Scales and payload bytes, without branches.
#pragma once

#include <octavo/backends/simt/qualifiers.hpp>
#include <octavo/numeric/e8m0.hpp>
#include <octavo/numeric/minifloat.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

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

/// The highest bit of every byte of a word that is an infinity or a NaN.
template <class E>
OCTAVO_DEVICE constexpr std::uint32_t nonfinite_bytes(std::uint32_t bytes) {
  constexpr std::uint32_t to_high_bit = 0x80 - (E::max_code + 1);
  return ((bytes & 0x7f7f7f7fu) + to_high_bit * 0x01010101u) & 0x80808080u;
}
/// The same bytes, those that are not finite as zeros.
template <class E>
OCTAVO_DEVICE constexpr std::uint32_t finite_bytes(std::uint32_t bytes) {
  return bytes & ~((nonfinite_bytes<E>(bytes) >> 7) * 0xff);
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
