// SPDX-License-Identifier: Apache-2.0
// What every kernel of a pass reads: the problem, its documents and the quantised tensors, and the small questions that
// the loops ask of them. Trivially copyable: it travels to a device by value.
#pragma once

#include <octavo/algorithm/mask.hpp>
#include <octavo/algorithm/softmax.hpp>
#include <octavo/backend/concept.hpp>
#include <octavo/scaling/quantize.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE

/// What an operand of this recipe is made of: mx32's scales travel in the operand, all others beside it.
template <class Recipe, class E>
using operand_element = std::conditional_t<Recipe::scale_per == recipe::granularity::block32, block_scaled<E>, E>;

/// `token`: a key's scale is folded into P or dS before they are quantised, so no scale of a row depends on a later
/// row. For the others the scale of a key tile is one number, applied to the tile's product.
template <class Recipe>
inline constexpr bool folds_token_scales = Recipe::scale_per == recipe::granularity::token;

/// One head of one document as a loop over its tiles sees it.
struct head_of_document {
  std::int64_t document = 0, h_q = 0, h_kv = 0;
  token_run q, kv;
};

template <class Recipe>
struct pass_data {
  octavo::problem problem;
  float scale = 0;  ///< of the softmax, the default resolved: optional's members do not run on every device
  documents q_docs, kv_docs;
  const_quantized q, k, v;
  const float* sink = nullptr;  ///< [h_q]
  /// [b, h_q, s_q] scale * q_i . u: what centring the keys took from the scores of row i
  const float* q_shift = nullptr;

  OCTAVO_HD head_of_document head(std::int64_t document, std::int64_t h_q) const {
    // The tail of one side pairs with nothing on the other.
    const bool tail = q_docs.is_tail(document) || kv_docs.is_tail(document);
    head_of_document at{document, h_q, h_q / (problem.h_q / problem.h_kv), q_docs.run(document), kv_docs.run(document)};
    if (tail) at.q.length = at.kv.length = 0;
    return at;
  }
  /// Tokens of a tile that have a payload: none in the tail, whose rows get their zeros without being read.
  OCTAVO_HD static int payload_tokens(const token_run& run, const token_tile& tile) {
    return run.length == 0 ? 0 : tile.tokens;
  }
  OCTAVO_HD key_ranges ranges(const head_of_document& at) const { return {problem, at.q.length, at.kv.length}; }

  OCTAVO_HD payload_plane q_plane(const head_of_document& at) const {
    return plane_of<Recipe>(q, {q_docs, problem.h_q, problem.d_qk}, at.document, at.h_q);
  }
  OCTAVO_HD payload_plane k_plane(const head_of_document& at) const {
    return plane_of<Recipe>(k, {kv_docs, problem.h_kv, problem.d_qk}, at.document, at.h_kv);
  }
  OCTAVO_HD payload_plane v_plane(const head_of_document& at) const {
    return plane_of<Recipe>(v, {kv_docs, problem.h_kv, problem.d_v}, at.document, at.h_kv);
  }
  /// Where row statistics of (document, h_q, row) stand.
  OCTAVO_HD std::int64_t statistic(std::int64_t document, std::int64_t h_q, std::int64_t row) const {
    return q_docs.statistic(document, h_q, problem.h_q, row);
  }
  /// The sink of row `index` of the statistics in log2 units, as it meets the (centred) scores; -inf without one, as in
  /// the tail, whose rows attend to nothing at all.
  OCTAVO_HD float sink_log2(std::int64_t document, std::int64_t h_q, std::int64_t index) const {
    if (sink == nullptr || q_docs.is_tail(document)) return minus_infinity;
    return (sink[h_q] - (q_shift != nullptr ? q_shift[index] : 0.0f)) * log2_e;
  }
};

/// Applies scale, softcap and mask to a tile of raw products: log2 scores, -inf where the mask forbids. Used by the
/// forward, the delta pass and the backward alike, so that the three see the same scores to the last bit.
template <class B, class Accum, class Rows, class Columns>
OCTAVO_HD void finish_scores(typename B::context& ctx, Accum& s, const score_map<B>& map, const tile_mask& mask,
                             const Rows& q_scale, const Columns& k_scale) {
  B::transform(ctx, s, [map](float x, int, int, float qs, float ks) { return map.score(x, qs, ks); }, q_scale, k_scale);
  if (map.softcap != 0) B::transform(ctx, s, [map](float x, int, int) { return map.capped(x); });
  if (!mask.full())
    B::transform(ctx, s, [mask](float x, int i, int j) { return mask.allowed(i, j) ? x : minus_infinity; });
}

/// log2 sv_j as P takes it in: of a token whose payload is all zeros, fold_of_zero. Such a token has scale 1, so only
/// tokens of that scale are looked at. A NaN for a scale says nothing of M: it is in the reciprocal, and so in l.
OCTAVO_HD inline int fold_exponent(const payload_plane& v, std::int64_t token, int d) {
  const e8m0 scale{static_cast<const std::uint8_t*>(v.scales)[token]};
  if (scale.is_nan()) return 0;
  if (scale.exponent() != 0) return scale.exponent();
  const std::uint8_t* payload = v.columnwise + token * v.columnwise_stride;
  for (int c = 0; c < d; ++c)
    if ((payload[c] & 0x7f) != 0) return 0;
  return fold_of_zero;
}
/// Its reciprocal; NaN for a NaN scale.
OCTAVO_HD inline float fold_reciprocal(const payload_plane& v, std::int64_t token, int d) {
  const int exponent = fold_exponent(v, token, d);
  return e8m0{static_cast<const std::uint8_t*>(v.scales)[token]}.is_nan() ? detail::float_nan() : exp2i(-exponent);
}

/// log2 sv_j and 1 / sv_j of a key tile where V's scales are folded into P; 0 and 1 where they are not.
template <class B, class Recipe, class Columns>
OCTAVO_HD void load_fold(typename B::context& ctx, Columns& exponent, Columns& reciprocal,
                         [[maybe_unused]] const payload_plane& v, [[maybe_unused]] int d,
                         [[maybe_unused]] std::int64_t j0, int n) {
  if constexpr (folds_token_scales<Recipe>) {
    B::load_rows(ctx, exponent, n, [=](int j) { return static_cast<float>(fold_exponent(v, j0 + j, d)); });
    B::load_rows(ctx, reciprocal, n, [=](int j) { return fold_reciprocal(v, j0 + j, d); });
  } else {
    B::load_rows(ctx, exponent, n, [](int) { return 0.0f; });
    B::load_rows(ctx, reciprocal, n, [](int) { return 1.0f; });
  }
}

OCTAVO_END_NAMESPACE
