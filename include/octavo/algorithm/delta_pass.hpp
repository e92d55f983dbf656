// SPDX-License-Identifier: Apache-2.0
// What the backward needs per row before its main loop: M, the reciprocal weight of the row's sum, and delta.
//
//     matched      n_i = sum_j 2^(s_ij - M_i)              weight 1 / n_i
//                  sum_i = sum_j 2^(s_ij - M_i) (dP_ij - c_i)   delta_i - c_i = sum_i / n_i
//     stale        delta_i = dO_i . O_i, dO as given       weight 1 / l_i
//     consistent   delta_i = dO^_i . (O_i [+ R_i])         weight 1 / l_i
//
// delta is kept as the pair (c_i, delta_i - c_i): where V has a common mode, dP and delta are both large, and their
// difference, formed as (dP - c) - (delta - c), keeps the digits that a difference of the large numbers would lose.
// c_i is the caller's delta_shift, or the mean of dP over the row's keys in its first allowed key tile.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/scaling/dequantize.hpp>

OCTAVO_BEGIN_NAMESPACE

/// Per-row terms of the backward, [b, h_q, s_q] each, in the caller's workspace.
struct row_terms {
  float* shift = nullptr;   ///< c
  float* delta = nullptr;   ///< delta - c
  float* weight = nullptr;  ///< 1 / n or 1 / l; 0 for a row without keys
};

/// What the backward adds to pass_data. G: the element type of dO and dS.
template <class Recipe>
struct backward_data {
  pass_data<Recipe> forward;
  const_quantized dout;
  const float* m = nullptr;
  row_terms rows;

  OCTAVO_HD payload_plane dout_plane(const head_of_document& at) const {
    return plane_of<Recipe>(dout, {forward.q_docs, forward.problem.h_q, forward.problem.d_v}, at.document, at.h_q);
  }
};

/// dP from raw products: exact for power-of-two scales. Shared with the backward, to the last bit.
template <class B, class Accum, class Rows, class Columns>
OCTAVO_HD void finish_dp(typename B::context& ctx, Accum& dp, const Rows& do_scale, const Columns& v_scale) {
  B::transform(ctx, dp, [](float x, int, int, float a, float b) { return x * (a * b); }, do_scale, v_scale);
}

/// The two sums of the matched delta: S and dP once more, for one tile of query rows. No O.
template <class B, class Recipe>
struct delta_sums_kernel {
  static constexpr const char* name = "generic delta pass";
  static constexpr int M = B::tile_q, N = B::tile_kv, D = B::max_head_dim;
  using E = operand_element<Recipe, typename Recipe::element>;
  using G = operand_element<Recipe, typename Recipe::gradient_element>;

  backward_data<Recipe> data;
  const float* given_shift = nullptr;  ///< c from the caller, or null
  delta_outputs sums;                  ///< n and sum, the sink's term included
  float* shift = nullptr;              ///< c that was used

  OCTAVO_HD std::int64_t items() const { return data.forward.q_docs.slots(M) * data.forward.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context& ctx, std::int64_t item) const {
    const pass_data<Recipe>& d = data.forward;
    const problem& p = d.problem;
    const std::int64_t h = item % p.h_q;
    const token_tile tile = d.q_docs.tile_at(item / p.h_q, M);
    if (tile.tokens == 0) return;
    const head_of_document at = d.head(tile.document, h);
    const key_ranges ranges = d.ranges(at);
    const int rows = tile_extent(tile.tokens, M), keys = tile_extent(at.kv.length, N);
    const int d_qk = static_cast<int>(p.d_qk), d_v = static_cast<int>(p.d_v);

    typename B::template operand<E, side::left, image::rowwise, M, D> q(ctx, rows, d_qk);
    typename B::template operand<G, side::left, image::rowwise, M, D> dout(ctx, rows, d_v);
    typename B::template operand<E, side::right, image::rowwise, N, D> k(ctx, keys, d_qk), v(ctx, keys, d_v);
    typename B::template accum<M, N> s(ctx, rows, keys), dp(ctx, rows, keys);
    typename B::template row_vector<M> q_scale(ctx, rows), do_scale(ctx, rows), m(ctx, rows), c(ctx, rows),
        mean(ctx, rows), n_sum(ctx, rows), dp_sum(ctx, rows);
    typename B::template col_vector<N> k_scale(ctx, keys), v_scale(ctx, keys);

    const score_map<B> map = score_map<B>::of(d.scale, p.softcap);
    const payload_plane q_plane = d.q_plane(at), k_plane = d.k_plane(at), v_plane = d.v_plane(at),
                        do_plane = data.dout_plane(at);
    const std::int64_t first_row = d.statistic(at.document, h, tile.first);
    const float* shift_in = given_shift;
    const float* m_in = data.m;
    const int tokens = d.payload_tokens(at.q, tile);
    B::load(ctx, q, q_plane, tile.first, tokens);
    B::load(ctx, dout, do_plane, tile.first, tokens);
    B::load_rows(ctx, q_scale, tokens, [=](int i) { return token_scale<Recipe>(q_plane, tile.first + i); });
    B::load_rows(ctx, do_scale, tokens, [=](int i) { return token_scale<Recipe>(do_plane, tile.first + i); });
    B::load_rows(ctx, m, tile.tokens, [=](int i) { return m_in[first_row + i]; });
    B::load_rows(ctx, c, tile.tokens, [=](int i) { return shift_in != nullptr ? shift_in[first_row + i] : 0.0f; });
    B::load_rows(ctx, n_sum, rows, [](int) { return 0.0f; });
    B::load_rows(ctx, dp_sum, rows, [](int) { return 0.0f; });

    const key_range tiles = tiles_of(ranges.rows(tile.first, tile.tokens), N);
    for (std::int64_t t = tiles.first; t < tiles.last; ++t) {
      const std::int64_t j0 = t * N;
      const int n = static_cast<int>(at.kv.length - j0 < N ? at.kv.length - j0 : N);
      const tile_mask mask(ranges, tile.first, j0, rows, keys);
      B::load(ctx, k, k_plane, j0, n);
      B::load(ctx, v, v_plane, j0, n);
      B::load_rows(ctx, k_scale, n, [=](int j) { return token_scale<Recipe>(k_plane, j0 + j); });
      B::load_rows(ctx, v_scale, n, [=](int j) { return token_scale<Recipe>(v_plane, j0 + j); });
      B::sync(ctx);

      B::fill(ctx, s, 0.0f);
      B::mma(ctx, s, q, k);
      finish_scores<B>(ctx, s, map, mask, q_scale, k_scale);
      B::fill(ctx, dp, 0.0f);
      B::mma(ctx, dp, dout, v);
      finish_dp<B>(ctx, dp, do_scale, v_scale);

      // Rows begin in order, so once the last row has begun there is no c left to find.
      if (given_shift == nullptr && ranges.row(tile.first + tile.tokens - 1).first >= j0) {
        B::load_rows(ctx, mean, rows, [](int) { return 0.0f; });
        B::row_sum(ctx, mean, dp, [mask](float x, int i, int j) { return mask.allowed(i, j) ? x : 0.0f; });
        B::transform_rows(
            ctx, c,
            [mask](float x, int i, float sum) { return mask.begins(i) ? sum / static_cast<float>(mask.count(i)) : x; },
            mean);
      }
      B::transform(ctx, s, [](float x, int, int, float mi) { return B::exp2(x - mi); }, m);
      B::row_sum(ctx, n_sum, s, [](float x, int, int) { return x; });
      B::combine(ctx, dp, s, [](float x, float weight, int, int, float ci) { return weighted(weight, x - ci); }, c);
      B::row_sum(ctx, dp_sum, dp, [](float x, int, int) { return x; });
      B::sync(ctx);
    }
    const delta_outputs to = sums;
    float* const shift_out = shift;
    B::for_rows(
        ctx, tile.tokens,
        [&](int i, float ni, float si, float mi, float ci) {
          // The sink is one more column with dP = 0.
          const float sink = sink_weight<B>(d.sink_log2(at.document, h, first_row + i), mi);
          to.n[first_row + i] = ni + sink;
          to.sum[first_row + i] = si - weighted(sink, ci);
          if (shift_out != nullptr) shift_out[first_row + i] = ci;
        },
        n_sum, dp_sum, m, c);
  }
};

/// The row terms from the sums of the matched delta (over all keys), or from O; and cleared accumulators for the main
/// loop.
template <class B, class Recipe, class Delta>
struct row_terms_kernel {
  static constexpr int M = B::tile_q;
  static constexpr int max_channels = B::max_head_dim;
  using G = typename Recipe::gradient_element;

  backward_data<Recipe> data;
  const float* shift = nullptr;  ///< matched: c
  delta_outputs sums;            ///< matched: n and sum over all keys
  const_tensor dout, o, o_residual;
  const float* l = nullptr;
  float* dq = nullptr;            ///< [b, h_q, s_q, d_qk], set to 0
  std::int32_t* turns = nullptr;  ///< per query tile and head, set to 0
  float* row_sum = nullptr;       ///< set to 0 where not null
  float* l1 = nullptr;

  OCTAVO_HD std::int64_t items() const { return data.forward.q_docs.slots(M) * data.forward.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const problem& p = data.forward.problem;
    turns[item] = 0;
    const std::int64_t h = item % p.h_q;
    const token_tile tile = data.forward.q_docs.tile_at(item / p.h_q, M);
    if (tile.tokens == 0) return;
    const head_of_document at = data.forward.head(tile.document, h);
    const std::int64_t first = data.forward.statistic(tile.document, h, tile.first);
    for (int i = 0; i < tile.tokens; ++i) {
      const std::int64_t row = first + i;
      for (std::int64_t c = 0; c < p.d_qk; ++c) dq[row * p.d_qk + c] = 0;
      if (row_sum != nullptr) row_sum[row] = 0;
      if (l1 != nullptr) l1[row] = 0;
      if constexpr (Delta::reads_o) {
        data.rows.shift[row] = 0;
        data.rows.delta[row] = at.q.length == 0 ? 0.0f : dot_with_o(at, tile.first + i);  // nothing in the tail
        data.rows.weight[row] = reciprocal_or_zero(l[row]);
      } else {
        const float weight = reciprocal_or_zero(sums.n[row]);
        data.rows.shift[row] = shift[row];
        data.rows.delta[row] = weighted(weight, sums.sum[row]);
        data.rows.weight[row] = weight;
      }
    }
  }

 private:
  OCTAVO_HD float dot_with_o(const head_of_document& at, std::int64_t token) const {
    const int d = static_cast<int>(data.forward.problem.d_v);
    float x[max_channels], y[max_channels], r[max_channels];
    const documents& docs = data.forward.q_docs;
    read_elements(o, element_offset(o, docs, at.document, token, at.h_q), d, y);
    if constexpr (Delta::reuses_forward_p) {  // consistent: what dP is made of
      dequantize_row<Recipe, G>(data.dout_plane(at), token, d, x);
      if (o_residual) {
        read_elements(o_residual, element_offset(o_residual, docs, at.document, token, at.h_q), d, r);
        for (int c = 0; c < d; ++c) y[c] += r[c];
      }
    } else if (dout) {
      read_elements(dout, element_offset(dout, docs, at.document, token, at.h_q), d, x);
    } else {
      dequantize_row<Recipe, G>(data.dout_plane(at), token, d, x);
    }
    // Eight running sums: independent, and each short.
    float sum[8] = {};
    for (int c = 0; c < d; c += 8)
      for (int e = 0; e < 8; ++e) sum[e] += x[c + e] * y[c + e];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
};

OCTAVO_END_NAMESPACE
