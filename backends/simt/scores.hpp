// SPDX-License-Identifier: Apache-2.0
// From raw products to scores in log2 units and to P, in fragments whose rows are queries. Forward, delta pass and dQ all
// use it, so that they see the same scores to the last bit; dK and dV do the same operations on the transposed fragment.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/algorithm/softmax.hpp>
#include <octavo/backends/simt/powers.hpp>
#include <octavo/backends/simt/probabilities.hpp>
#include <octavo/backends/simt/products.hpp>
#include <octavo/backends/simt/visible.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Scores of rows of a large M become rounded products, with nothing left to multiply by.
template <class M, class Shape>
OCTAVO_DEVICE void round_large(float (&s)[Shape::elements], float (&factor)[Shape::rows],
                               const float (&m)[Shape::rows]) {
  bool any = false;
  OCTAVO_UNROLL
  for (int r = 0; r < Shape::rows; ++r) any |= is_large(m[r]);
  if (!any) [[likely]]
    return;
  OCTAVO_UNROLL
  for (int i = 0; i < Shape::elements; ++i)
    if (is_large(m[Shape::row(i)])) s[i] = M::multiply(s[i], factor[Shape::row(i)]);
  OCTAVO_UNROLL
  for (int r = 0; r < Shape::rows; ++r)
    if (is_large(m[r])) factor[r] = 1;
}

/// What a score_map is made of, where the registers of one are too many: few problems have a softcap.
struct soft_scale {
  float scale, softcap;
  template <class M>
  OCTAVO_DEVICE score_map<functions<M>> map() const {
    return score_map<functions<M>>::of(scale, softcap);
  }
  template <class Recipe>
  OCTAVO_DEVICE static soft_scale of(const pass_data<Recipe>& data) {
    return {data.scale, data.problem.softcap};
  }
};

/// Makes s[i] * factor[row] the score. factor comes as the scales of row and key tile and of the softmax; `token`
/// multiplies the key's own scale in, a softcap leaves nothing to multiply by. key_scale: at the lane's first column.
template <class M, class Shape, bool folds>
OCTAVO_DEVICE void finish_scores(float (&s)[Shape::elements], float (&factor)[Shape::rows], const float* key_scale,
                                 const soft_scale& scale) {
  if constexpr (folds) {
    OCTAVO_UNROLL
    for (int i = 0; i < Shape::elements; ++i) s[i] *= key_scale[Shape::column(i)];
  }
  if (scale.softcap == 0) [[likely]]
    return;
  const score_map<functions<M>> map = scale.template map<M>();
  OCTAVO_UNROLL
  for (int i = 0; i < Shape::elements; ++i) s[i] = map.capped(s[i] * factor[Shape::row(i)]);
  OCTAVO_UNROLL
  for (float& f : factor) f = 1;
}

/// x becomes `value` where the mask forbids the pair: -inf for a score, 0 for a weight. keys: of the rows of a block, in
/// shared memory, as few steps look at them. first_key: of the lane's columns.
template <class Shape, class Place>
OCTAVO_DEVICE void forbid(float (&x)[Shape::elements], float value, const row_keys* keys, const Place& place,
                          int first_key) {
  row_keys mine[Shape::rows];
  OCTAVO_UNROLL
  for (int r = 0; r < Shape::rows; ++r) mine[r] = keys[place.row(r)];
  OCTAVO_UNROLL
  for (int i = 0; i < Shape::elements; ++i)
    if (!mine[Shape::row(i)].allows(first_key + Shape::column(i))) x[i] = value;
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
