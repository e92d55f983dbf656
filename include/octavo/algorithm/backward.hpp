// SPDX-License-Identifier: Apache-2.0
// The generic backward: one tile of keys walks over the query tiles that see it, for every query head of its group.
//
//     P  = 2^(s - M) * weight          (consistent: the forward's rounded P^ * weight)
//     dP = dO V^T,  dS = P ((dP - c) - (delta - c))
//     dV += quant(P)^T dO              P per key and 128 queries        (forward: O = P V)
//     dK += quant(dS)^T Q              dS per key and 128 queries       (forward: S = scale Q K^T)
//     dQ += quant(dS) K                dS per query and 128 keys
//
// dK and dV stay in the tile, so grouped heads need no reduction. dQ is added in FP32 memory; key tiles of one query
// tile take turns, so the order of the sums, and with it every bit, is fixed. The scale of S enters dQ and dK at the
// end.
#pragma once

#include <octavo/algorithm/delta_pass.hpp>

OCTAVO_BEGIN_NAMESPACE

template <class B, class Recipe, class Delta>
struct backward_kernel {
  static constexpr const char* name = "generic backward";
  static constexpr int M = B::tile_q, N = B::tile_kv, D = B::max_head_dim;
  using element = typename Recipe::element;
  using E = operand_element<Recipe, element>;
  using G = operand_element<Recipe, typename Recipe::gradient_element>;

  backward_data<Recipe> data;
  backward_outputs out;
  float* dq = nullptr;  ///< [b, h_q, s_q, d_qk], before the scale
  std::int32_t* turns = nullptr;
  float* row_sum = nullptr;  ///< [b, h_q, s_q] or null
  float* l1 = nullptr;

  OCTAVO_HD std::int64_t items() const { return data.forward.kv_docs.slots(N) * data.forward.problem.h_kv; }

  OCTAVO_HD void operator()(typename B::context& ctx, std::int64_t item) const {
    const pass_data<Recipe>& d = data.forward;
    const problem& p = d.problem;
    const std::int64_t h_kv = item % p.h_kv;
    const token_tile tile = d.kv_docs.tile_at(item / p.h_kv, N);
    if (tile.tokens == 0) return;
    const std::int64_t group = p.group();
    const head_of_document kv_at = d.head(tile.document, h_kv * group);
    const key_ranges ranges = d.ranges(kv_at);
    const int rows = tile_extent(kv_at.q.length, M), keys = tile_extent(tile.tokens, N);
    const int d_qk = static_cast<int>(p.d_qk), d_v = static_cast<int>(p.d_v);
    const std::int64_t j0 = tile.first, key_tile = j0 / N;

    typename B::template operand<E, side::right, image::rowwise, N, D> k(ctx, keys, d_qk), v(ctx, keys, d_v);
    typename B::template operand<E, side::right, image::columnwise, N, D> k_columns(ctx, keys, d_qk);
    typename B::template operand<E, side::left, image::rowwise, M, D> q(ctx, rows, d_qk);
    typename B::template operand<E, side::right, image::columnwise, M, D> q_columns(ctx, rows, d_qk);
    typename B::template operand<G, side::left, image::rowwise, M, D> dout(ctx, rows, d_v);
    typename B::template operand<G, side::right, image::columnwise, M, D> dout_columns(ctx, rows, d_v);
    typename B::template operand<E, side::left, image::columnwise, M, N> p_columns(ctx, rows, keys);
    typename B::template operand<G, side::left, image::columnwise, M, N> ds_columns(ctx, rows, keys);
    typename B::template operand<G, side::left, image::rowwise, M, N> ds_rows(ctx, rows, keys);
    typename B::template accum<M, N> s(ctx, rows, keys), dp(ctx, rows, keys), cap(ctx, rows, keys);
    typename B::template accum<N, D> dk(ctx, keys, d_qk), dv(ctx, keys, d_v), dk_part(ctx, keys, d_qk),
        dv_part(ctx, keys, d_v);
    typename B::template accum<M, D> dq_part(ctx, rows, d_qk);
    typename B::template row_vector<M> q_scale(ctx, rows), do_scale(ctx, rows), m(ctx, rows), c(ctx, rows),
        delta(ctx, rows), weight(ctx, rows), row_descale(ctx, rows), sums(ctx, rows), magnitudes(ctx, rows);
    typename B::template row_vector<N> key_descale(ctx, keys);
    typename B::template col_vector<N> k_scale(ctx, keys), v_scale(ctx, keys), v_exponent(ctx, keys),
        v_reciprocal(ctx, keys);

    const score_map<B> map = score_map<B>::of(d.scale, p.softcap);
    const payload_plane k_plane = d.k_plane(kv_at), v_plane = d.v_plane(kv_at);
    const int tokens = d.payload_tokens(kv_at.kv, tile);
    B::load(ctx, k, k_plane, j0, tokens);
    B::load(ctx, v, v_plane, j0, tokens);
    B::load(ctx, k_columns, k_plane, j0, tokens);
    B::load_rows(ctx, k_scale, tokens, [=](int j) { return token_scale<Recipe>(k_plane, j0 + j); });
    B::load_rows(ctx, v_scale, tokens, [=](int j) { return token_scale<Recipe>(v_plane, j0 + j); });
    load_fold<B, Recipe>(ctx, v_exponent, v_reciprocal, v_plane, d_v, j0, tokens);
    B::fill(ctx, dk, 0.0f);
    B::fill(ctx, dv, 0.0f);

    for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
      const head_of_document at = d.head(tile.document, h);
      const payload_plane q_plane = d.q_plane(at), do_plane = data.dout_plane(at);
      for (std::int64_t i0 = 0; i0 < at.q.length; i0 += M) {
        const int n = static_cast<int>(at.q.length - i0 < M ? at.q.length - i0 : M);
        const key_range visited = tiles_of(ranges.rows(i0, n), N);
        if (key_tile < visited.first || key_tile >= visited.last) continue;
        const tile_mask mask(ranges, i0, j0, rows, keys);
        const std::int64_t first_row = d.statistic(at.document, h, i0);

        B::load(ctx, q, q_plane, i0, n);
        B::load(ctx, q_columns, q_plane, i0, n);
        B::load(ctx, dout, do_plane, i0, n);
        B::load(ctx, dout_columns, do_plane, i0, n);
        B::load_rows(ctx, q_scale, n, [=](int i) { return token_scale<Recipe>(q_plane, i0 + i); });
        B::load_rows(ctx, do_scale, n, [=](int i) { return token_scale<Recipe>(do_plane, i0 + i); });
        const row_terms terms = data.rows;
        const float* m_in = data.m;
        B::load_rows(ctx, m, n, [=](int i) { return m_in[first_row + i]; });
        B::load_rows(ctx, c, n, [=](int i) { return terms.shift[first_row + i]; });
        B::load_rows(ctx, delta, n, [=](int i) { return terms.delta[first_row + i]; });
        B::load_rows(ctx, weight, n, [=](int i) { return terms.weight[first_row + i]; });
        B::sync(ctx);

        B::fill(ctx, s, 0.0f);
        B::mma(ctx, s, q, k);
        finish_scores<B>(ctx, s, map, mask, q_scale, k_scale);
        if (p.softcap != 0) B::combine(ctx, cap, s, [map](float, float x, int, int) { return map.cap_derivative(x); });
        probabilities(ctx, s, m, weight, v_exponent, v_reciprocal);

        B::fill(ctx, dp, 0.0f);
        B::mma(ctx, dp, dout, v);
        finish_dp<B>(ctx, dp, do_scale, v_scale);
        B::combine(
            ctx, dp, s, [](float x, float pij, int, int, float ci, float di) { return weighted(pij, (x - ci) - di); },
            c, delta);
        if (row_sum != nullptr || l1 != nullptr) {
          B::load_rows(ctx, sums, rows, [](int) { return 0.0f; });
          B::load_rows(ctx, magnitudes, rows, [](int) { return 0.0f; });
          B::row_sum(ctx, sums, dp, [](float x, int, int) { return x; });
          B::row_sum(ctx, magnitudes, dp, [](float x, int, int) { return x < 0 ? -x : x; });
        }
        if (p.softcap != 0) B::combine(ctx, dp, cap, [](float x, float y, int, int) { return weighted(x, y); });

        // dV and dK: the left operands are quantised along the queries.
        const auto fold_rows = [](float x, int, int, float scale) {
          return folds_token_scales<Recipe> ? weighted(x, scale) : x;
        };
        B::quantize(ctx, p_columns, key_descale, s, fold_rows, do_scale);
        B::fill(ctx, dv_part, 0.0f);
        B::mma(ctx, dv_part, p_columns, dout_columns);
        add_scaled(ctx, dv, dv_part, key_descale, tile_scale(do_plane, i0));

        B::quantize(ctx, ds_columns, key_descale, dp, fold_rows, q_scale);
        B::fill(ctx, dk_part, 0.0f);
        B::mma(ctx, dk_part, ds_columns, q_columns);
        add_scaled(ctx, dk, dk_part, key_descale, tile_scale(q_plane, i0));

        // dQ: quantised along the keys.
        B::quantize(ctx, ds_rows, row_descale, dp, fold_rows, k_scale);
        B::fill(ctx, dq_part, 0.0f);
        B::mma(ctx, dq_part, ds_rows, k_columns);
        const float k_tile_scale = tile_scale(k_plane, j0);
        B::transform(ctx, dq_part, [=](float x, int, int, float r) { return x * (r * k_tile_scale); }, row_descale);

        float* const row_sum_out = row_sum;
        float* const l1_out = l1;
        B::in_order(ctx, &turns[(d.q_docs.first_slot(at.document, M) + i0 / M) * p.h_q + h],
                    static_cast<int>(key_tile - visited.first), [&] {
                      B::accumulate(ctx, dq + first_row * p.d_qk, p.d_qk, dq_part, n);
                      if (row_sum_out == nullptr && l1_out == nullptr) return;
                      B::for_rows(
                          ctx, n,
                          [&](int i, float sum, float magnitude) {
                            if (row_sum_out != nullptr) row_sum_out[first_row + i] += sum;
                            if (l1_out != nullptr) l1_out[first_row + i] += magnitude;
                          },
                          sums, magnitudes);
                    });
        B::sync(ctx);
      }
    }
    const float scale = d.scale;
    B::transform(ctx, dk, [scale](float x, int, int) { return x * scale; });
    B::store(ctx, out.dk, element_offset(out.dk, d.kv_docs, tile.document, j0, h_kv), dk, tile.tokens);
    B::store(ctx, out.dv, element_offset(out.dv, d.kv_docs, tile.document, j0, h_kv), dv, tile.tokens);
  }

 private:
  /// P from log2 scores, as the policy says.
  template <class Accum, class Rows, class Columns>
  OCTAVO_HD static void probabilities(typename B::context& ctx, Accum& s, const Rows& m, const Rows& weight,
                                      const Columns& v_exponent, const Columns& v_reciprocal) {
    if constexpr (Delta::reuses_forward_p) {
      // consistent: the rounding of the forward again, with V's scale folded in and out as it was there.
      B::transform(
          ctx, s,
          [](float x, int, int, float mi, float wi, float e, float r) {
            const float folded = p_scale<element> * B::exp2(x - (mi - e));
            return probability(x, unfolded_weight<element>(folded, r), wi * (1.0f / p_scale<element>));
          },
          m, weight, v_exponent, v_reciprocal);
    } else {
      B::transform(
          ctx, s, [](float x, int, int, float mi, float wi) { return probability(x, B::exp2(x - mi), wi); }, m, weight);
    }
  }

  /// The scale of the contracted tile where it is one number beside the operands.
  OCTAVO_HD static float tile_scale(const payload_plane& x, std::int64_t token) {
    return folds_token_scales<Recipe> ? 1.0f : token_scale<Recipe>(x, token);
  }

  template <class Accum, class Rows>
  OCTAVO_HD static void add_scaled(typename B::context& ctx, Accum& sum, const Accum& part, const Rows& descale,
                                   float factor) {
    B::combine(ctx, sum, part, [=](float x, float y, int, int, float r) { return x + y * (r * factor); }, descale);
  }
};

/// Whether the rows of dS over this call's keys may sum to something else than zero: a sink, or keys elsewhere, hold
/// the rest.
OCTAVO_HD inline bool rows_keep_a_sum(const problem& p) { return p.sink || p.part_of_keys(); }

/// dS of a row's sink: P_sink (0 - delta).
template <class B, class Recipe>
OCTAVO_HD float sink_gradient(const backward_data<Recipe>& data, std::int64_t document, std::int64_t h,
                              std::int64_t row) {
  const float weight = sink_weight<B>(data.forward.sink_log2(document, h, row), data.m[row]) * data.rows.weight[row];
  return -weighted(weight, data.rows.shift[row] + data.rows.delta[row]);
}

/// After the main loop: dQ to its type with the scale of S, the sink's share of the row sums, delta for who asks.
template <class B, class Recipe>
struct finish_rows_kernel {
  static constexpr int M = B::tile_q;
  static constexpr int max_channels = B::max_head_dim;

  backward_data<Recipe> data;
  backward_outputs out;
  const float* dq = nullptr;
  float* row_sum = nullptr;
  const float* key_shift = nullptr;  ///< u [b, h_kv, d_qk] where keys are centred

  OCTAVO_HD std::int64_t items() const { return data.forward.q_docs.slots(M) * data.forward.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const pass_data<Recipe>& d = data.forward;
    const problem& p = d.problem;
    const std::int64_t h = item % p.h_q;
    const token_tile tile = d.q_docs.tile_at(item / p.h_q, M);
    const float scale = d.scale;
    for (int i = 0; i < tile.tokens; ++i) {
      const std::int64_t row = d.statistic(tile.document, h, tile.first + i);
      float x[max_channels];
      for (std::int64_t c = 0; c < p.d_qk; ++c) x[c] = dq[row * p.d_qk + c] * scale;
      // k_j = centred k_j + u: where the rows of dS sum to zero u drops out, else it does not.
      if (rows_keep_a_sum(p) && key_shift != nullptr && !d.q_docs.is_tail(tile.document)) {
        const float* u = key_shift + (tile.document * p.h_kv + h / p.group()) * p.d_qk;
        for (std::int64_t c = 0; c < p.d_qk; ++c) x[c] += scale * u[c] * row_sum[row];
      }
      write_elements(out.dq, element_offset(out.dq, d.q_docs, tile.document, tile.first + i, h),
                     static_cast<int>(p.d_qk), x);
      const float delta = data.rows.shift[row] + data.rows.delta[row];
      if (out.delta != nullptr) out.delta[row] = delta;
      if (out.row_sum != nullptr) out.row_sum[row] = row_sum[row] + sink_gradient<B>(data, tile.document, h, row);
    }
  }
};

OCTAVO_END_NAMESPACE
