// SPDX-License-Identifier: Apache-2.0
// From raw products to scores in log2 units, in a fragment whose rows are queries. Forward, delta pass and dQ all use
// it, so that they see the same scores to the last bit; dK and dV do the same operations on the transposed fragment.
#pragma once

#include <octavo/backends/cuda/common/scores.hpp>
#include <octavo/backends/cuda/hopper/writer.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

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

/// `token`: multiplies by each key's own scale. s[i] * factor[row] is the score then, factor being the product of the
/// scales of row, key tile and softmax.
template <bool folds, int R>
OCTAVO_DEVICE void scale_keys(float (&s)[R], const float* key_scale, int quad_lane) {
  if constexpr (folds) {
    OCTAVO_UNROLL
    for (int i = 0; i < R; ++i) s[i] *= key_scale[column(i, quad_lane)];
  }
}
/// Makes s[i] * factor[row] the score where there is a softcap, which leaves nothing to multiply by.
template <int R>
OCTAVO_DEVICE void cap_scores(float (&s)[R], float (&factor)[2], const score_map<functions>& map) {
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

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
