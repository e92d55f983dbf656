// SPDX-License-Identifier: Apache-2.0
// Factors and powers of two in FP32, by their bits.
#pragma once

#include <octavo/backends/simt/qualifiers.hpp>
#include <octavo/numeric/float32.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Keeps -inf * factor from being NaN where all scales are next to nothing (such scores are 0 to every digit that counts).
OCTAVO_DEVICE float at_least_tiny(float factor) { return factor < 1e-36f ? 1e-36f : factor; }

/// Where |M| is beyond this, the digits that a fused s * factor - M keeps of the product and a maximum of rounded products
/// does not are worth more than rounding P: products are then rounded first, in every loop.
inline constexpr float largest_fused = 0x1p20f;
/// Not so of a row that has no key yet, M = -inf; so of NaN.
OCTAVO_DEVICE bool is_large(float m) { return !(fabsf(m) <= largest_fused) && m != -detail::float_infinity(); }

/// 2^-e for a whole number e of at most 126 in magnitude, and 0 for 127, by its bits: added to a large number whose last place is 1, e
/// stands in the lowest ones.
OCTAVO_DEVICE float negative_power_of_two(float e) {
  const std::uint32_t bits = detail::bit_cast<std::uint32_t>(e + 0x1.8p23f);
  return detail::bit_cast<float>((std::uint32_t{detail::float_bias} - bits) << detail::float_mantissa_bits);
}

/// A power of two that brings amax to at most the largest number of E: 2^-exponent, and 2^exponent to undo it.
struct power_of_two_scale {
  float up, down;

  template <class E>
  OCTAVO_DEVICE static power_of_two_scale of(float amax) {
    // The exponent of amax / max, rounded up. A tile of nothing but zeros takes the least one; what has overflowed is NaN,
    // not a large number to be saturated.
    const std::uint32_t bits = detail::bit_cast<std::uint32_t>(fmaxf(amax * (1.0f / E::max), 0x1p-126f));
    if (bits >= detail::float_exponent_mask) return {detail::float_nan(), detail::float_nan()};
    const std::uint32_t exponent = (bits + detail::float_mantissa_mask) >> detail::float_mantissa_bits;
    return {detail::bit_cast<float>((2 * detail::float_bias - exponent) << detail::float_mantissa_bits),
            detail::bit_cast<float>(exponent << detail::float_mantissa_bits)};
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
