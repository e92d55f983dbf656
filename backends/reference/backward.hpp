// SPDX-License-Identifier: Apache-2.0
// The backward. Row by row, with w_ij = 2^(s_ij - M_i) (consistent: the forward's rounded weight) and n_i their sum:
//
//     P_ij  = w_ij / n_i        dP_ij = dO^_i . V^_j        dS_ij = P_ij ((dP_ij - c_i) - (delta_i - c_i))
//
//     policy       n_i                    delta_i                                     c_i
//     stale        the forward's l_i      dO_i . O_i, dO as given                     0
//     matched      sum_j w_ij (+ sink)    c_i + sum_j w_ij (dP_ij - c_i) / n_i        delta_shift, or a mean of dP^
//     consistent   the forward's l_i      dO^_i . (O_i + R_i)                         0
//
// then, per slab of 128 queries (the most that share a scale of P or dS),
//
//     dV_j = sum_i P^_ij dO^_i    dQ_i = scale * sum_j dS^_ij K^_j    dK_j = scale * sum_i dS^_ij Q^_i
#pragma once

#include <octavo/backends/reference/softmax.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// Everything that the rows of one query head read.
struct gradient_head {
  const problem& p;
  const rules& r;
  policy delta;
  const backward_inputs& in;
  head_rows at;
  const query_side& q;
  const key_side& keys;
  scores score;
  operand dout;       // dO^
  matrix dout_given;  // dO, for the stale delta
  matrix o;           // O, or O + R; empty where the policy does not read it

  double input(const float* statistic, std::int64_t i) const { return statistic[at.statistics() + i]; }
};

/// R64 is the same whatever the policy: in exact arithmetic the three deltas are one, and the definition needs no O
/// that was rounded on its way through memory. Only a part of the keys cannot tell the whole sum.
inline policy effective_policy(const problem& p, const rules& r) {
  return r.exact() && !p.part_of_keys() ? policy::matched : r.delta;
}

inline gradient_head load_gradient_head(const problem& p, const rules& r, policy delta, const backward_inputs& in,
                                        const document& doc, std::int64_t head, const query_side& q,
                                        const key_side& keys) {
  const head_rows at = query_rows(p, doc, head);
  gradient_head g{p, r, delta, in, at, q, keys, scores(p, r, doc, q, keys), {}, {}, {}};
  if (in.dout) g.dout_given = load(in.dout, at, p.d_v);
  const bool from_payload = p.payload_inputs && in.dout_payload;
  g.dout = from_payload ? load_payload(in.dout_payload, r, at, p.d_v) : quantise(g.dout_given, r, r.gradient);
  if (!in.dout) g.dout_given = g.dout.rowwise();
  if (delta == policy::matched) return g;
  g.o = load(in.o, at, p.d_v);
  if (delta == policy::consistent && p.o_residual) {
    const matrix residual = load(in.o_residual, at, p.d_v);
    for (std::int64_t i = 0; i < at.rows; ++i) add_weighted(g.o.row(i), 1, residual.row(i), p.d_v);
  }
  return g;
}

/// s, w and dP of one row, indexed by key; only visible keys are set.
struct row_pairs {
  explicit row_pairs(std::int64_t s_kv) : s(static_cast<std::size_t>(s_kv)), w(s), dp(s) {}
  key_range range{};
  double m = 0;
  std::vector<double> s, w, dp;
};

inline void compute_pairs(const gradient_head& g, std::int64_t i, row_pairs& row) {
  row.range = g.score.keys(i);
  row.m = g.input(g.in.m, i);
  g.score.row(i, row.s.data());
  for (auto j = row.range.begin; j < row.range.end; ++j) {
    const auto k = static_cast<std::size_t>(j);
    row.w[k] = g.delta == policy::consistent ? g.score.rounded_weight(j, row.s[k], row.m) : std::exp2(row.s[k] - row.m);
    row.dp[k] = dot(g.dout.rowwise().row(i), g.keys.v.rowwise().row(j), g.p.d_v);
  }
}

/// c_i: the caller's, or the mean of dP^ over the visible keys in the first tile of 128 keys that holds one. Any number
/// near the values of dP^ will do; what matters is that a common mode of V does not stay in the sum.
inline double delta_shift(const gradient_head& g, std::int64_t i, const row_pairs& row) {
  if (g.in.delta_shift) return g.input(g.in.delta_shift, i);
  if (row.range.empty()) return 0;
  const std::int64_t end = std::min(row.range.end, (row.range.begin / 128 + 1) * 128);
  double sum = 0;
  for (auto j = row.range.begin; j < end; ++j) sum += row.dp[static_cast<std::size_t>(j)];
  return sum / static_cast<double>(end - row.range.begin);
}

/// sum_j w_ij and sum_j w_ij (dP_ij - c) over the visible keys and the sink, which is one more key with dP = 0.
struct matched_sums {
  double n = 0, sum = 0;
};
inline matched_sums sum_pairs(const row_pairs& row, double c, double sink) {
  matched_sums total;
  for (auto j = row.range.begin; j < row.range.end; ++j)
    if (const double w = row.w[static_cast<std::size_t>(j)]; w != 0) {
      total.n += w;
      total.sum += w * (row.dp[static_cast<std::size_t>(j)] - c);
    }
  if (sink != 0) total.n += sink, total.sum += sink * (0 - c);
  return total;
}

/// n, c and delta - c of one row, and the sink's share of the softmax.
struct row_delta {
  double n, p_sink, c, minus_c;
};

inline row_delta form_delta(const gradient_head& g, std::int64_t i, const row_pairs& row) {
  const double sink = std::exp2(g.score.sink_log2(i, row.m));  // 0 without one
  // A sink far above the scores overflows n (and before that the forward's l, in FP32): then it has all the weight.
  const auto share_of_sink = [sink](double n) { return std::isinf(n) ? 1 : sink == 0 ? 0 : sink / n; };
  if (g.delta != policy::matched) {
    const double n = g.input(g.in.l, i);
    const double* gradient = (g.delta == policy::stale ? g.dout_given : g.dout.rowwise()).row(i);
    double delta = 0;
    for (std::int64_t c = 0; c < g.p.d_v; ++c)
      if (g.o(i, c) != 0) delta += gradient[c] * g.o(i, c);
    return {n, share_of_sink(n), 0, delta};
  }
  const double c = delta_shift(g, i, row);
  const matched_sums all =
      g.p.delta_halves ? matched_sums{g.input(g.in.delta_n, i), g.input(g.in.delta_sum, i)} : sum_pairs(row, c, sink);
  if (all.n == 0) return {0, 0, 0, 0};
  return {all.n, share_of_sink(all.n), c, std::isinf(all.n) ? 0 - c : all.sum / all.n};
}

/// Fills P and dS (before a softcap's derivative: then dS is multiplied with it) and the row's diagnostics.
struct row_sums {
  double delta = 0, sum = 0, l1 = 0, sink = 0;  // sum over the keys; sink: dS of the sink
};

inline row_sums gradient_row(const gradient_head& g, std::int64_t i, const row_pairs& row, double* p, double* ds) {
  const row_delta delta = form_delta(g, i, row);
  if (delta.n == 0) return {};
  row_sums out;
  out.delta = delta.c + delta.minus_c;
  if (delta.p_sink != 0) out.sink = delta.p_sink * ((0 - delta.c) - delta.minus_c);
  for (auto j = row.range.begin; j < row.range.end; ++j) {
    const auto k = static_cast<std::size_t>(j);
    p[j] = row.w[k] / delta.n;
    if (p[j] == 0) continue;
    const double ds_ij = p[j] * ((row.dp[k] - delta.c) - delta.minus_c);
    out.sum += ds_ij;
    out.l1 += std::fabs(ds_ij);
    ds[j] = ds_ij * g.score.softcap_slope(row.s[k]);
  }
  return out;
}

/// dQ of one query head; its parts of dK and dV (both without the scale of S) are added. Returns its part of dsink.
inline double backward_head(const gradient_head& g, const backward_outputs& out, matrix& dk, matrix& dv) {
  const problem& p = g.p;
  const statistics delta_out(out.delta, g.at), sum_out(out.row_sum, g.at), l1_out(out.l1, g.at);
  const std::int64_t s_kv = dk.rows();
  const double scale = softmax_scale(p);
  matrix dq(g.at.rows, p.d_qk);
  row_pairs row(s_kv);
  double dsink = 0;
  for (std::int64_t first = 0; first < g.at.rows; first += 128) {
    const std::int64_t rows = std::min<std::int64_t>(128, g.at.rows - first);
    matrix prob(rows, s_kv), ds(rows, s_kv);
    for (std::int64_t i = 0; i < rows; ++i) {
      compute_pairs(g, first + i, row);
      const row_sums sums = gradient_row(g, first + i, row, prob.row(i), ds.row(i));
      delta_out.set(first + i, sums.delta);
      sum_out.set(first + i, sums.sum + sums.sink);
      l1_out.set(first + i, sums.l1);
      dsink += sums.sink;
      // Centred keys gave sum_j dS_ij (k_j - u). The rest is zero, unless a sink or keys elsewhere hold a part of the
      // row.
      if ((p.sink || p.part_of_keys()) && !g.keys.u.empty())
        add_weighted(dq.row(first + i), sums.sum, g.keys.u.data(), p.d_qk);
    }
    const matrix prob_dv = quantise_product(prob, contract::queries, g.dout, first, g.r, g.r.element);
    const matrix ds_dq = quantise_product(ds, contract::keys, g.keys.k, 0, g.r, g.r.gradient);
    const matrix ds_dk = quantise_product(ds, contract::queries, g.q.q, first, g.r, g.r.gradient);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < s_kv; ++j) {
        add_weighted(dv.row(j), prob_dv(i, j), g.dout.columnwise().row(first + i), p.d_v);
        add_weighted(dq.row(first + i), ds_dq(i, j), g.keys.k.columnwise().row(j), p.d_qk);
        add_weighted(dk.row(j), ds_dk(i, j), g.q.q.columnwise().row(first + i), p.d_qk);
      }
  }
  for (std::int64_t i = 0; i < dq.rows(); ++i)
    for (std::int64_t c = 0; c < p.d_qk; ++c) dq(i, c) *= scale;
  store(out.dq, g.at, dq);
  return dsink;
}

/// One kv head of one document, with the query heads that read it. dsink: [h_q], of this document.
inline void backward_group(const problem& p, const rules& r, const backward_inputs& in, const backward_outputs& out,
                           const document& doc, std::int64_t kv_head, double* dsink) {
  const key_side keys = load_keys(p, r, in, doc, kv_head);
  const head_rows at_keys = key_rows(p, doc, kv_head);
  matrix dk(doc.s_kv, p.d_qk), dv(doc.s_kv, p.d_v);
  for (std::int64_t head = kv_head * p.group(); head < (kv_head + 1) * p.group(); ++head) {
    const query_side q = load_queries(p, r, in, doc, head, keys.u);
    const gradient_head g = load_gradient_head(p, r, effective_policy(p, r), in, doc, head, q, keys);
    if (p.save_payloads) save(out.dout_payload, g.dout, r, g.at);
    dsink[head] = backward_head(g, out, dk, dv);
  }
  for (std::int64_t j = 0; j < dk.rows(); ++j)
    for (std::int64_t c = 0; c < p.d_qk; ++c) dk(j, c) *= softmax_scale(p);
  store(out.dk, at_keys, dk);
  store(out.dv, at_keys, dv);
}

/// The two sums of the matched delta over this call's keys, and its sink: of parts to be added, one has it.
inline void delta_group(const problem& p, const rules& r, const backward_inputs& in, const delta_outputs& out,
                        const document& doc, std::int64_t kv_head) {
  const key_side keys = load_keys(p, r, in, doc, kv_head);
  for (std::int64_t head = kv_head * p.group(); head < (kv_head + 1) * p.group(); ++head) {
    const query_side q = load_queries(p, r, in, doc, head, keys.u);
    const gradient_head g = load_gradient_head(p, r, policy::matched, in, doc, head, q, keys);
    const statistics n_out(out.n, g.at), sum_out(out.sum, g.at);
    row_pairs row(doc.s_kv);
    for (std::int64_t i = 0; i < doc.s_q; ++i) {
      compute_pairs(g, i, row);
      const double sink = std::exp2(g.score.sink_log2(i, row.m));
      const matched_sums sums = sum_pairs(row, delta_shift(g, i, row), sink);
      n_out.set(i, sums.n);
      sum_out.set(i, sums.sum);
    }
  }
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
