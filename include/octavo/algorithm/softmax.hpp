// SPDX-License-Identifier: Apache-2.0
// The online softmax in powers of two, s_ij = log2(e) * S_ij, row by row:
//
//     M_i   = ceil(max_j s_ij)                an integer, also while it runs; a sink takes no part in it
//     P^_ij = round(p_scale * 2^(s_ij - M_i)) / p_scale        one rounding, shared by everything that uses P
//     l_i   = sum_j P^_ij  (+ 2^(sink - M_i))                  of rounded values
//     O_i   = sum_j P^_ij V_j / l_i,   LSE_i = ln 2 * (M_i + log2 l_i)
//
// Because M is an integer and every scale a power of two, P^ has the same mantissa whatever the running maximum was at
// the time: the result has no tile size in it, and a backward can reproduce P^. (The policy `stale` keeps the true
// maximum and the unrounded sum, as other libraries do.)
//
// Where a token's scale sv_j is folded into P (recipe `token`), M_i = ceil(max_j (s_ij + log2 sv_j)), P~_ij is rounded
// after the fold, and l sums P~_ij / sv_j. A key whose payload is all zeros takes no part in M, since its scale, 1, says
// nothing about V, and adds its unrounded weight to l: O, to which it gives nothing, is not there to agree with.
#pragma once

#include <octavo/algorithm/delta.hpp>
#include <octavo/numeric/float32.hpp>
#include <octavo/scaling/recipe.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE

inline constexpr float log2_e = 1.44269504088896340736f;
inline constexpr float ln_2 = 0.69314718055994530942f;
inline constexpr float minus_infinity = -detail::float_infinity();

/// The static scale of the forward's P, the largest power of two that E represents: P <= 1 then uses the most of E's
/// range without saturating, and its rounding needs no maximum over keys. 2^8 for E4M3 (max 448); BF16 needs none.
template <class E>
inline constexpr float p_scale = 256.0f;
template <>
inline constexpr float p_scale<bf16> = 1.0f;
static_assert(p_scale<e4m3> <= e4m3::max && 2 * p_scale<e4m3> > e4m3::max);

/// x if the weight is not zero. A pair without weight carries nothing, whatever its other factor: an infinity or a NaN
/// behind a mask must not reach the row as 0 * NaN.
OCTAVO_HD inline float weighted(float weight, float x) { return weight == 0 ? 0.0f : weight * x; }

/// What stands for log2 sv_j of a key whose V is zero: so far below any other that such a key never sets M.
inline constexpr int fold_of_zero = -64;

/// What a pair adds to l in units of 1 / p_scale, from its folded weight (unrounded) and 1 / sv_j.
template <class E>
OCTAVO_HD float unfolded_weight(float folded, float reciprocal) {
  const bool of_zero = reciprocal == exp2i(-fold_of_zero);
  return weighted(of_zero ? folded : E::round(folded), reciprocal);
}

/// M from a row's maximum (-inf where no key is allowed, which gives 0).
template <class Delta>
OCTAVO_HD float shared_exponent(float row_maximum) {
  if (row_maximum == minus_infinity) return 0;
  return Delta::integer_maximum ? std::ceil(row_maximum) : row_maximum;
}

/// P in a backward from what 2^(s - M) gave: 0 where the mask forbids the pair, although the weight of the row's sum is
/// NaN once a non-finite input reached the row.
OCTAVO_HD inline float probability(float s, float exponential, float weight) {
  return s == minus_infinity ? 0.0f : exponential * weight;
}

/// The reciprocal of a row's sum; 0 for a row without weight.
OCTAVO_HD inline float reciprocal_or_zero(float sum) { return sum == 0 ? 0.0f : 1.0f / sum; }

/// The sink's term relative to M. Its exponent is held at 100, so that no sum becomes infinite: a sink above all scores
/// by more (even +inf) leaves O and gradients at 2^-100 of the values, where their true size is smaller still.
template <class B>
OCTAVO_HD float sink_weight(float sink_log2, float m) {
  if (sink_log2 == minus_infinity) return 0;
  const float exponent = sink_log2 - m;
  return B::exp2(exponent > 100.0f ? 100.0f : exponent);
}

/// LSE from the sum over keys and the sink's logit in log2 units (-inf: none). Formed so that a sink far above every
/// score does not overflow.
OCTAVO_HD inline float log_sum_exp(float m, float key_sum, float sink_log2) {
  const float keys = key_sum == 0 ? minus_infinity : m + std::log2(key_sum);
  const float high = keys > sink_log2 || keys != keys ? keys : sink_log2;
  const float low = keys > sink_log2 || keys != keys ? sink_log2 : keys;
  if (low == minus_infinity || high - high != 0) return ln_2 * high;
  return ln_2 * (high + std::log2(1.0f + std::exp2(low - high)));
}

/// How a raw product q_i . k_j of payloads becomes a score in log2 units.
template <class B>
struct score_map {
  float scale_log2;  ///< softmax_scale * log2(e)
  float softcap;     ///< 0: none
  float cap_log2;    ///< softcap * log2(e)
  float per_cap;     ///< 1 / cap_log2; 0 without a softcap

  OCTAVO_HD static score_map of(float scale, float softcap) {
    return {scale * log2_e, softcap, softcap * log2_e, softcap == 0 ? 0.0f : 1.0f / (softcap * log2_e)};
  }

  /// s, before the mask. descale: the scales of the two tokens.
  OCTAVO_HD float score(float product, float q_scale, float k_scale) const {
    return product * (scale_log2 * q_scale * k_scale);
  }
  OCTAVO_HD float capped(float s) const { return cap_log2 * B::tanh(s * per_cap); }
  /// d(capped score) / d(score), from the capped score.
  OCTAVO_HD float cap_derivative(float s) const {
    const float t = s * per_cap;
    return 1.0f - t * t;
  }
};

OCTAVO_END_NAMESPACE
