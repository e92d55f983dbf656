// SPDX-License-Identifier: Apache-2.0
// P of the backward from scores, element by element, for fragments of either orientation and the schedules of every
// architecture. M: exp2, multiply, pack and unpack, as a machine has them.
#pragma once

#include <octavo/algorithm/delta.hpp>
#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/simt/powers.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// s * factor + shift: fused, or rounded first where the row's M is large, as the forward does it.
template <class M>
OCTAVO_DEVICE float shifted_score(float s, float factor, float shift, bool large) {
  return large ? M::multiply(s, factor) + shift : fmaf(s, factor, shift);
}

/// x[i] = 2^(x[i] * factor(i) - exponent(i)) for matched and stale, whose exponent holds the row's sum; the forward's
/// rounded P times weight(i) for consistent. special: of row_term_tile, whether rows have a large M.
/// fold(i): log2 of the scale that the forward folded into P.
template <class M, class Recipe, class Delta, int R, class Factor, class Exponent, class Weight, class Fold>
OCTAVO_DEVICE void probabilities(float (&x)[R], bool special, Factor factor, Exponent exponent, Weight weight,
                                 Fold fold) {
  using E = typename Recipe::element;
  if constexpr (!Delta::reuses_forward_p) {
    if (!special) [[likely]] {
      OCTAVO_UNROLL
      for (int i = 0; i < R; ++i) x[i] = M::exp2(fmaf(x[i], factor(i), -exponent(i)));
      return;
    }
    OCTAVO_UNROLL
    for (int i = 0; i < R; ++i)
      x[i] = M::exp2(shifted_score<M>(x[i], factor(i), -exponent(i), is_large(exponent(i)))) * weight(i);
  } else {
    constexpr bool folds = Recipe::scale_per == recipe::granularity::token;
    static_assert(p_scale<E> == 256.0f);
    // The operations of the forward, in its order: the same bits.
    OCTAVO_UNROLL
    for (int i = 0; i < R; ++i) {
      const float shift = folds ? 8 - exponent(i) + fold(i) : 8 - exponent(i);
      x[i] = M::exp2(shifted_score<M>(x[i], factor(i), shift, special && is_large(exponent(i))));
    }
    OCTAVO_UNROLL
    for (int i = 0; i < R; i += 4) {
      float rounded[4];
      M::template unpack<E>(M::template pack<E>(x[i], x[i + 1], x[i + 2], x[i + 3]), rounded);
      OCTAVO_UNROLL
      for (int e = 0; e < 4; ++e) {
        if constexpr (folds) {
          const float exponent_of_v = fold(i + e), folded = exponent_of_v == fold_of_zero ? x[i + e] : rounded[e];
          x[i + e] = folded * negative_power_of_two(exponent_of_v) * weight(i + e);
        } else {
          x[i + e] = rounded[e] * weight(i + e);
        }
      }
    }
  }
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
