// SPDX-License-Identifier: Apache-2.0
// From raw products to scores in log2 units, in a fragment whose rows are queries. Forward, delta pass and dQ all use
// it, so that they see the same scores to the last bit; dK and dV do the same operations on the transposed fragment.
#pragma once

#include <octavo/backends/cuda/hopper/tiles.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// Keeps -inf * factor from being NaN where all scales are next to nothing (such scores are 0 to every digit that counts).
OCTAVO_DEVICE float at_least_tiny(float factor) { return factor < 1e-36f ? 1e-36f : factor; }

/// Where |M| is beyond this, the digits that a fused s * factor - M keeps of the product and a maximum of rounded products
/// does not are worth more than rounding P: products are then rounded first, in every loop.
inline constexpr float largest_fused = 0x1p20f;
OCTAVO_DEVICE bool is_large(float m) { return !(fabsf(m) <= largest_fused); }

/// Scores of rows of a large M become rounded products, with nothing left to multiply by.
template <int R>
OCTAVO_DEVICE void round_large(float (&s)[R], float (&factor)[2], const float (&m)[2]) {
  if (!(is_large(m[0]) || is_large(m[1]))) [[likely]]
    return;
  OCTAVO_UNROLL
  for (int i = 0; i < R; ++i)
    if (is_large(m[row_half(i)])) s[i] = ptx::multiply(s[i], factor[row_half(i)]);
  OCTAVO_UNROLL
  for (int half = 0; half < 2; ++half)
    if (is_large(m[half])) factor[half] = 1;
}

/// Makes s[i] * factor[row] the score. factor comes as the scales of row and key tile and of the softmax; `token`
/// multiplies the key's own scale in, a softcap leaves nothing to multiply by.
template <bool folds, int R>
OCTAVO_DEVICE void finish_scores(float (&s)[R], float (&factor)[2], const float* key_scale,
                                 const score_map<functions>& map, int quad_lane) {
  if constexpr (folds) {
    OCTAVO_UNROLL
    for (int i = 0; i < R; ++i) s[i] *= key_scale[column(i, quad_lane)];
  }
  if (map.softcap == 0) [[likely]]
    return;
  OCTAVO_UNROLL
  for (int i = 0; i < R; ++i) s[i] = map.capped(s[i] * factor[row_half(i)]);
  factor[0] = factor[1] = 1;
}

/// x becomes `value` where the mask forbids the pair: -inf for a score, 0 for a weight.
template <int R>
OCTAVO_DEVICE void forbid(float (&x)[R], float value, const row_keys (&keys)[2], int first_key, int quad_lane) {
  OCTAVO_UNROLL
  for (int i = 0; i < R; ++i)
    if (!keys[row_half(i)].allows(first_key + column(i, quad_lane))) x[i] = value;
}

/// 2^-e for a whole number e of at most 126 in magnitude, by its bits: added to a large number whose last place is 1, e
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

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
