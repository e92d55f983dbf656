// SPDX-License-Identifier: Apache-2.0
// R8 as a matrix unit adds: the reference's operands, roundings and deltas, with every product summed by the rules of
// the unit and in the runs of its schedules. What decides how a weight of P is rounded follows the device as well: its
// exponent is one FP32 number, and M the running one of tiles of 128 keys, above which small weights underflow later.
// All else is float64. So what is left between this and a device of that unit is what FP32 leaves of any backend.
//
// Recipes with power-of-two scales of E4M3, matched and consistent; no softcap, sink, split of keys or residual.
#pragma once

#include <octavo/backend/entry.hpp>
#include <octavo/backends/reference/backend.hpp>

#include "support/unit_sums.hpp"

namespace octavo_tests {

/// Rows of an operand for products that contract d.
inline contracted_rows channels_of(const math::image& x) {
  contracted_rows out(x.values.rows(), x.values.cols());
  for (std::int64_t i = 0; i < x.values.rows(); ++i)
    for (std::int64_t c = 0; c < x.values.cols(); ++c)
      out.row(i)[c] = scaled_element::of(x.values(i, c), std::ilogb(x.scale(i / x.extent.rows, c / x.extent.cols)));
  return out;
}
/// A row per channel, for products that contract tokens. A folded scale is in the other factor.
inline contracted_rows tokens_of(const math::operand& x) {
  const math::image& from = x.two_images ? x.by_column : x.by_row;
  contracted_rows out(from.values.cols(), from.values.rows());
  for (std::int64_t t = 0; t < from.values.rows(); ++t)
    for (std::int64_t c = 0; c < from.values.cols(); ++c)
      out.row(c)[t] =
          scaled_element::of(from.values(t, c) / x.fold(t),
                             x.folds ? 0 : std::ilogb(from.scale(t / from.extent.rows, c / from.extent.cols)));
  return out;
}
/// P or dS, quantised per row and `run` tokens with the other factor's scales folded in. x has the contracted axis along
/// its columns.
inline contracted_rows quantised_rows(const math::matrix& x, const math::operand& other, std::int64_t run) {
  math::matrix folded(x.rows(), x.cols());
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t t = 0; t < x.cols(); ++t) folded(i, t) = x(i, t) * other.fold(t);
  return channels_of(math::quantise_blocks(folded, {1, run}, math::format_of<octavo::e4m3>()));
}
inline math::matrix transposed(const math::matrix& x) {
  math::matrix out(x.cols(), x.rows());
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t j = 0; j < x.cols(); ++j) out(j, i) = x(i, j);
  return out;
}
/// y += scale * a b^T.
inline void add_product(const matrix_unit& u, math::matrix& y, double scale, const contracted_rows& a,
                        const contracted_rows& b, std::int64_t run) {
  for (std::int64_t i = 0; i < y.rows(); ++i)
    for (std::int64_t c = 0; c < y.cols(); ++c) y(i, c) += scale * multiply(u, a.row(i), b.row(c), a.depth(), run);
}

/// The scores of a row's visible keys, and what becomes of them.
struct unit_row {
  const matrix_unit& unit;
  const math::scores& score;
  const contracted_rows queries, keys;
  float factor;  ///< from a product to a score in log2 units
  std::vector<double> s;

  unit_row(const matrix_unit& u, const octavo::problem& p, const math::scores& of, const math::query_side& q,
           const math::key_side& k)
      : unit(u),
        score(of),
        queries(channels_of(q.q.by_row)),
        keys(channels_of(k.k.by_row)),
        factor(static_cast<float>(math::softmax_scale(p)) * std::numbers::log2e_v<float>),
        s(static_cast<std::size_t>(k.k.rowwise().rows())) {}

  void make(std::int64_t i) {
    const math::key_range range = score.keys(i);
    for (std::int64_t j = range.begin; j < range.end; ++j)
      s[static_cast<std::size_t>(j)] = factor * multiply(unit, queries.row(i), keys.row(j), queries.depth(), 0);
  }
  /// x + s_j in one FP32 addition, as an exponent of two.
  double exponential(std::int64_t j, double x) const {
    return static_cast<float>(std::exp2(static_cast<float>(s[static_cast<std::size_t>(j)] + x)));
  }
  /// P^_ij relative to 2^m.
  double rounded_weight(std::int64_t j, double m) const {
    return score.rounded_weight(j, exponential(j, 8 - m + std::log2(score.weight_fold(j))));
  }
};

inline void unit_forward_head(const matrix_unit& u, const octavo::problem& p, const octavo::forward_outputs& out,
                              const math::head_rows& at, const math::query_side& q, const math::key_side& keys,
                              const math::scores& score) {
  const math::statistics lse_out(out.lse, at), m_out(out.m, at), l_out(out.l, at);
  const contracted_rows values = tokens_of(keys.v);
  const std::int64_t s_kv = keys.v.rowwise().rows();
  const std::vector<scaled_element> ones(static_cast<std::size_t>(s_kv), scaled_element{1, 0});
  math::matrix o(at.rows, p.d_v);
  unit_row row(u, p, score, q, keys);
  for (std::int64_t i = 0; i < at.rows; ++i) {
    const math::key_range range = score.keys(i);
    row.make(i);
    const double m = score.maximum(range, row.s.data());
    contracted_rows weights(1, s_kv);
    double l = 0, running = m;
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      if (j == range.begin || j % 128 == 0)
        running = score.maximum({range.begin, std::min(range.end, (j / 128 + 1) * 128)}, row.s.data());
      const double weight = row.rounded_weight(j, running) * std::exp2(running - m);
      weights.row(0)[j] = scaled_element::of(weight * keys.v.fold(j), static_cast<int>(running - m) - 8);
      l += weight;
    }
    if (u.sums_weights && !keys.v.folds) l = multiply(u, weights.row(0), ones.data(), s_kv, u.key_run);
    for (std::int64_t c = 0; c < p.d_v && l != 0; ++c)
      o(i, c) = multiply(u, weights.row(0), values.row(c), s_kv, u.key_run) / l;
    m_out.set(i, m);
    l_out.set(i, l);
    lse_out.set(i, std::numbers::ln2 * (m + std::log2(l)) + q.shift[static_cast<std::size_t>(i)]);
  }
  math::store_output(p, out, at, o);
}

/// dQ of a query head, and its parts of dK and dV (without the scale of S).
inline void unit_backward_head(const matrix_unit& u, const math::gradient_head& g, const octavo::backward_outputs& out,
                               math::matrix& dk, math::matrix& dv) {
  const octavo::problem& p = g.p;
  const math::statistics delta_out(out.delta, g.at), sum_out(out.row_sum, g.at), l1_out(out.l1, g.at);
  const contracted_rows douts = channels_of(g.dout.by_row), values = channels_of(g.keys.v.by_row);
  math::matrix prob(g.at.rows, dk.rows()), ds(g.at.rows, dk.rows()), dq(g.at.rows, p.d_qk);
  unit_row row(u, p, g.score, g.q, g.keys);
  math::row_pairs pairs(dk.rows());
  for (std::int64_t i = 0; i < g.at.rows; ++i) {
    pairs.range = g.score.keys(i);
    pairs.m = g.input(g.in.m, i);
    row.make(i);
    for (std::int64_t j = pairs.range.begin; j < pairs.range.end; ++j) {
      const auto k = static_cast<std::size_t>(j);
      pairs.s[k] = row.s[k];
      pairs.w[k] = g.delta == math::policy::consistent ? row.rounded_weight(j, pairs.m) : row.exponential(j, -pairs.m);
      pairs.dp[k] = multiply(u, douts.row(i), values.row(j), p.d_v, 0);
    }
    const math::row_sums sums = math::gradient_row(g, i, pairs, prob.row(i), ds.row(i));
    delta_out.set(i, sums.delta);
    sum_out.set(i, sums.sum);
    l1_out.set(i, sums.l1);
  }
  const std::int64_t block = g.r.product_block(), query_block = u.query_run != 0 ? std::min(block, u.query_run) : block;
  add_product(u, dq, math::softmax_scale(p), quantised_rows(ds, g.keys.k, block), tokens_of(g.keys.k), u.key_run);
  add_product(u, dk, 1, quantised_rows(transposed(ds), g.q.q, query_block), tokens_of(g.q.q), u.query_run);
  add_product(u, dv, 1, quantised_rows(transposed(prob), g.dout, query_block), tokens_of(g.dout), u.query_run);
  math::store(out.dq, g.at, dq);
}

/// The reference backend with the sums of a unit.
template <const matrix_unit& unit>
struct unit_reference : octavo::backends::reference {
  static constexpr const char* name() { return "reference, as a unit adds"; }

  template <class Config>
  static octavo::status forward(queue& q, const octavo::problem& p, const octavo::forward_inputs& in,
                                const octavo::forward_outputs& out, octavo::workspace) {
    constexpr math::rules r = math::rules_of<Config>();
    math::for_each_group(q.threads, p, in, [&](const math::document& doc, std::int64_t kv_head) {
      const math::key_side keys = math::load_keys(p, r, in, doc, kv_head);
      for (std::int64_t head = kv_head * p.group(); head < (kv_head + 1) * p.group(); ++head) {
        const math::query_side queries = math::load_queries(p, r, in, doc, head, keys.u);
        unit_forward_head(unit, p, out, math::query_rows(p, doc, head), queries, keys,
                          math::scores(p, r, doc, queries, keys));
      }
    });
    return {};
  }

  template <class Config>
  static octavo::status backward(queue& q, const octavo::problem& p, const octavo::backward_inputs& in,
                                 const octavo::backward_outputs& out, octavo::workspace) {
    constexpr math::rules r = math::rules_of<Config>();
    math::for_each_group(q.threads, p, in, [&](const math::document& doc, std::int64_t kv_head) {
      const math::key_side keys = math::load_keys(p, r, in, doc, kv_head);
      math::matrix dk(doc.s_kv, p.d_qk), dv(doc.s_kv, p.d_v);
      for (std::int64_t head = kv_head * p.group(); head < (kv_head + 1) * p.group(); ++head) {
        const math::query_side queries = math::load_queries(p, r, in, doc, head, keys.u);
        unit_backward_head(unit, math::load_gradient_head(p, r, r.delta, in, doc, head, queries, keys), out, dk, dv);
      }
      for (std::int64_t j = 0; j < dk.rows(); ++j)
        for (std::int64_t c = 0; c < p.d_qk; ++c) dk(j, c) *= math::softmax_scale(p);
      math::store(out.dk, math::key_rows(p, doc, kv_head), dk);
      math::store(out.dv, math::key_rows(p, doc, kv_head), dv);
    });
    return {};
  }
};

}  // namespace octavo_tests
