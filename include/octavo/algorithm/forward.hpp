// SPDX-License-Identifier: Apache-2.0
// The generic forward: one tile of query rows walks over the key tiles that its mask lets it see.
//
//     s = Q K^T, scaled and masked        M' = max(M, max_j s)        a = 2^(M - M')
//     P^ = round(2^8 2^(s - M'))          l = a l + sum_j P^           O = a O + P^ V
//
// Invariant after each key tile: O and l are the sums over the keys seen so far, relative to 2^M. The product of each
// key tile starts from zero and is added in FP32 (tile_kv <= 128 keys), so a unit that truncates its accumulator loses
// nothing to long rows.
#pragma once

#include <octavo/algorithm/pass_data.hpp>

OCTAVO_BEGIN_NAMESPACE

template <class B, class Recipe, class Delta>
struct forward_kernel {
  static constexpr const char* name = "generic forward";
  static constexpr int M = B::tile_q, N = B::tile_kv, D = B::max_head_dim;
  using E = typename Recipe::element;
  using O = operand_element<Recipe, E>;

  pass_data<Recipe> data;
  forward_outputs out;

  OCTAVO_HD std::int64_t items() const { return data.q_docs.slots(M) * data.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context& ctx, std::int64_t item) const {
    const problem& p = data.problem;
    const std::int64_t h = item % p.h_q;
    const token_tile tile = data.q_docs.tile_at(item / p.h_q, M);
    if (tile.tokens == 0) return;
    const head_of_document at = data.head(tile.document, h);
    const key_ranges ranges = data.ranges(at);
    const int rows = tile_extent(tile.tokens, M), keys = tile_extent(at.kv.length, N);
    const int d_qk = static_cast<int>(p.d_qk), d_v = static_cast<int>(p.d_v);

    typename B::template operand<O, side::left, image::rowwise, M, D> q(ctx, rows, d_qk);
    typename B::template operand<O, side::right, image::rowwise, N, D> k(ctx, keys, d_qk);
    typename B::template operand<O, side::right, image::columnwise, N, D> v(ctx, keys, d_v);
    typename B::template operand<O, side::left, image::rowwise, M, N> p8(ctx, rows, keys);
    typename B::template accum<M, N> s(ctx, rows, keys);
    typename B::template accum<M, D> o(ctx, rows, d_v), pv(ctx, rows, d_v);
    typename B::template row_vector<M> q_scale(ctx, rows), maximum(ctx, rows), m(ctx, rows), alpha(ctx, rows),
        l(ctx, rows);
    typename B::template col_vector<N> k_scale(ctx, keys), v_exponent(ctx, keys), v_reciprocal(ctx, keys);

    const score_map<B> map = score_map<B>::of(data.scale, p.softcap);
    const payload_plane k_plane = data.k_plane(at), v_plane = data.v_plane(at);
    load_queries(ctx, q, q_scale, at, tile);
    B::fill(ctx, o, 0.0f);
    B::load_rows(ctx, l, rows, [](int) { return 0.0f; });
    B::load_rows(ctx, maximum, rows, [](int) { return minus_infinity; });
    B::load_rows(ctx, m, rows, [](int) { return 0.0f; });

    const key_range tiles = tiles_of(ranges.rows(tile.first, tile.tokens), N);
    for (std::int64_t t = tiles.first; t < tiles.last; ++t) {
      const std::int64_t j0 = t * N;
      const int n = static_cast<int>(at.kv.length - j0 < N ? at.kv.length - j0 : N);
      const tile_mask mask(ranges, tile.first, j0, rows, keys);

      B::load(ctx, k, k_plane, j0, n);
      B::load(ctx, v, v_plane, j0, n);
      B::load_rows(ctx, k_scale, n, [=](int j) { return token_scale<Recipe>(k_plane, j0 + j); });
      load_fold<B, Recipe>(ctx, v_exponent, v_reciprocal, v_plane, d_v, j0, n);
      B::sync(ctx);

      B::fill(ctx, s, 0.0f);
      B::mma(ctx, s, q, k);
      finish_scores<B>(ctx, s, map, mask, q_scale, k_scale);

      // The running maximum, and what it does to the sums so far.
      B::row_max(ctx, maximum, s, [](float x, int, int, float e) { return x + e; }, v_exponent);
      // Nothing summed yet: nothing to rescale (and the exponent, from M = 0, could be anything).
      B::transform_rows(
          ctx, alpha,
          [](float, int, float max, float m_old, float sum) {
            return sum == 0 ? 0.0f : B::exp2(m_old - shared_exponent<Delta>(max));
          },
          maximum, m, l);
      B::transform_rows(ctx, m, [](float, int, float max) { return shared_exponent<Delta>(max); }, maximum);

      // P in units of 1 / p_scale, with the fold; then rounded.
      B::transform(
          ctx, s, [](float x, int, int, float mi, float e) { return p_scale<E> * B::exp2(x - (mi - e)); }, m,
          v_exponent);
      B::transform_rows(ctx, l, [](float x, int, float a) { return x * a; }, alpha);
      if constexpr (Delta::integer_maximum)
        B::row_sum(ctx, l, s, [](float x, int, int, float r) { return unfolded_weight<E>(x, r); }, v_reciprocal);
      else
        B::row_sum(ctx, l, s, [](float x, int, int, float r) { return weighted(x, r); }, v_reciprocal);
      B::transform(ctx, s, [](float x, int, int) { return E::round(x); });
      B::convert(ctx, p8, s);

      B::fill(ctx, pv, 0.0f);
      B::mma(ctx, pv, p8, v);
      const float tile_scale = folds_token_scales<Recipe> ? 1.0f : token_scale<Recipe>(v_plane, j0);
      B::combine(ctx, o, pv, [=](float x, float y, int, int, float a) { return x * a + y * tile_scale; }, alpha);
      B::sync(ctx);
    }
    finish(ctx, at, tile, o, m, l);
  }

 private:
  template <class Q, class Rows>
  OCTAVO_HD void load_queries(typename B::context& ctx, Q& q, Rows& q_scale, const head_of_document& at,
                              const token_tile& tile) const {
    const payload_plane plane = data.q_plane(at);
    const int tokens = data.payload_tokens(at.q, tile);
    B::load(ctx, q, plane, tile.first, tokens);
    B::load_rows(ctx, q_scale, tokens, [=](int i) { return token_scale<Recipe>(plane, tile.first + i); });
  }

  /// O / l, LSE, M and l. The sink joins the sum here: it takes no part in M.
  template <class Accum, class Rows>
  OCTAVO_HD void finish(typename B::context& ctx, const head_of_document& at, const token_tile& tile, Accum& o, Rows& m,
                        Rows& l) const {
    const std::int64_t first = data.statistic(at.document, at.h_q, tile.first);
    const pass_data<Recipe>& d = data;
    const forward_outputs& to = out;
    B::transform_rows(ctx, l, [](float x, int) { return x * (1.0f / p_scale<E>); });
    B::for_rows(
        ctx, tile.tokens,
        [&](int i, float mi, float li) {
          const std::int64_t row = first + i;
          const float shift = d.q_shift != nullptr ? d.q_shift[row] : 0.0f;
          if (to.lse != nullptr) to.lse[row] = log_sum_exp(mi, li, d.sink_log2(at.document, at.h_q, row)) + shift;
          if (to.m != nullptr) to.m[row] = mi;
        },
        m, l);
    B::transform_rows(
        ctx, l,
        [&](float x, int i, float mi) { return x + sink_weight<B>(d.sink_log2(at.document, at.h_q, first + i), mi); },
        m);
    B::for_rows(
        ctx, tile.tokens,
        [&](int i, float li) {
          if (to.l != nullptr) to.l[first + i] = li;
        },
        l);
    B::transform_rows(ctx, l, [](float x, int) { return reciprocal_or_zero(x) * (1.0f / p_scale<E>); });
    B::transform(ctx, o, [](float x, int, int, float r) { return x * r; }, l);
    B::store(ctx, out.o, element_offset(out.o, d.q_docs, tile.document, tile.first, at.h_q), o, tile.tokens);
    if (d.problem.o_residual) {
      const dtype type = out.o.type;
      B::transform(ctx, o, [type](float x, int, int) { return x - round_to(type, x); });
      B::store(ctx, out.o_residual, element_offset(out.o_residual, d.q_docs, tile.document, tile.first, at.h_q), o,
               tile.tokens);
    }
  }
};

OCTAVO_END_NAMESPACE
