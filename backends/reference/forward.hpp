// SPDX-License-Identifier: Apache-2.0
// The forward, row by row:
//
//     M_i   = ceil(max_j s_ij)
//     l_i   = sum_j P^_ij + 2^(log2(e) sink - M_i)         stale: sums the unrounded 2^(s_ij - M_i)
//     O_i   = sum_j P^_ij V^_j / l_i
//     LSE_i = ln 2 * (M_i + log2 l_i) + scale * q_i . u    of the true scores, centred or not
//
// and the merge of forwards over disjoint keys.
#pragma once

#include <octavo/backends/reference/softmax.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// log2(2^a + 2^b), for any a and b: a sink far above all scores overflows 2^b, not this.
inline double log2_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  if (low == -infinity || high == infinity) return high;
  return high + std::log2(1 + std::exp2(low - high));
}

/// O and its residual: what the stored O lost to rounding, T(O - T(O)) for an O in T.
inline void store_output(const problem& p, const forward_outputs& out, const head_rows& at, const matrix& o) {
  store(out.o, at, o);
  if (!p.o_residual) return;
  matrix residual(o.rows(), o.cols());
  for (std::int64_t i = 0; i < o.rows(); ++i)
    for (std::int64_t c = 0; c < o.cols(); ++c) residual(i, c) = o(i, c) - round_to(o(i, c), format_of(out.o.type));
  store(out.o_residual, at, residual);
}

/// What rows hold that see no key and no sink.
inline void store_empty(const problem& p, const forward_outputs& out, const head_rows& at) {
  store_output(p, out, at, matrix(at.rows, p.d_v));
  statistics(out.lse, at).fill(at.rows, -infinity);
  statistics(out.m, at).fill(at.rows, 0);
  statistics(out.l, at).fill(at.rows, 0);
}

inline void forward_head(const problem& p, const rules& r, const forward_outputs& out, const head_rows& at,
                         const query_side& q, const key_side& keys, const scores& score) {
  const statistics lse_out(out.lse, at), m_out(out.m, at), l_out(out.l, at);
  matrix o(at.rows, p.d_v);
  std::vector<double> s(static_cast<std::size_t>(keys.v.rowwise().rows()));
  for (std::int64_t i = 0; i < at.rows; ++i) {
    score.row(i, s.data());
    const key_range range = score.keys(i);
    const double m = score.maximum(range, s.data());
    double l = 0;
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      const double s_ij = s[static_cast<std::size_t>(j)];
      const double weight = score.rounded_weight(j, s_ij, m);
      l += r.delta == policy::stale ? std::exp2(s_ij - m) : weight;
      add_weighted(o.row(i), weight, keys.v.columnwise().row(j), p.d_v);
    }
    const double sink = score.sink_log2(i, m);
    const double lse_log2 = m + log2_add(std::log2(l), sink);
    if (p.sink) l += std::exp2(sink);
    for (std::int64_t c = 0; c < p.d_v && l != 0; ++c) o(i, c) /= l;
    m_out.set(i, m);
    l_out.set(i, l);
    lse_out.set(i, std::numbers::ln2 * lse_log2 + q.shift[static_cast<std::size_t>(i)]);
  }
  store_output(p, out, at, o);
}

/// One kv head of one document, with the query heads that read it.
inline void forward_group(const problem& p, const rules& r, const forward_inputs& in, const forward_outputs& out,
                          const document& doc, std::int64_t kv_head) {
  const key_side keys = load_keys(p, r, in, doc, kv_head);
  if (p.save_payloads) {
    save(out.k_payload, keys.k, r, key_rows(p, doc, kv_head));
    save(out.v_payload, keys.v, r, key_rows(p, doc, kv_head));
  }
  for (std::int64_t head = kv_head * p.group(); head < (kv_head + 1) * p.group(); ++head) {
    const head_rows at = query_rows(p, doc, head);
    const query_side q = load_queries(p, r, in, doc, head, keys.u);
    if (p.save_payloads) save(out.q_payload, q.q, r, at);
    forward_head(p, r, out, at, q, keys, scores(p, r, doc, q, keys));
  }
}

/// Rows of one head from forwards over disjoint keys: each part weighs l * 2^M, and a part without keys weighs nothing.
/// A sink belongs to exactly one part. Where it lies so far above the scores that l overflowed, its part is the whole.
inline void combine_head(const problem& p, const partial_forward* parts, int count, const forward_outputs& out,
                         const head_rows& at) {
  const statistics lse_out(out.lse, at), m_out(out.m, at), l_out(out.l, at);
  matrix o(at.rows, p.d_v);
  std::vector<matrix> part_o;
  for (int k = 0; k < count; ++k) part_o.push_back(load(parts[k].o, at, p.d_v));
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const std::int64_t index = at.statistics() + i;
    double m = -infinity, lse_log2 = -infinity;
    for (int k = 0; k < count; ++k) {
      if (parts[k].l[index] != 0) m = std::max(m, double{parts[k].m[index]});
      lse_log2 = log2_add(lse_log2, std::numbers::log2e * parts[k].lse[index]);
    }
    if (m == -infinity) m = 0;
    double l = 0;
    for (int k = 0; k < count; ++k) l += parts[k].l[index] * std::exp2(parts[k].m[index] - m);
    for (int k = 0; k < count; ++k) {
      const double part_l = parts[k].l[index];
      const double weight =
          std::isinf(l) ? (std::isinf(part_l) ? 1 : 0) : part_l * std::exp2(parts[k].m[index] - m) / l;
      add_weighted(o.row(i), l == 0 ? 0 : weight, part_o[static_cast<std::size_t>(k)].row(i), p.d_v);
    }
    m_out.set(i, m);
    l_out.set(i, l);
    lse_out.set(i, std::numbers::ln2 * lse_log2);
  }
  store_output(p, out, at, o);
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
