// SPDX-License-Identifier: Apache-2.0
// The operands of one head, its scores, and the weights that the softmax makes of them. In log2 units:
//
//     s_ij  = log2(e) * scale * q^_i . (k_j - u)^          u: the key shift, 0 without centring
//     P^_ij = round(2^8 * 2^(s_ij - M_i) * fold_j) / (2^8 * fold_j)
//
// Both passes call the same functions here, so that S and P^ have the same bits in both.
#pragma once

#include <octavo/backends/reference/payload.hpp>

#include <numbers>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// K and V of one kv head. u is empty without key centring.
struct key_side {
  std::vector<double> u;
  operand k, v;
};

/// Q of one query head.
struct query_side {
  operand q;
  std::vector<double> shift;  // scale * q_i . u with the unquantised q_i: what centring took from the row's scores
  double sink = -infinity;    // in the units of S
};

inline double softmax_scale(const problem& p) {
  return p.softmax_scale ? double{*p.softmax_scale} : 1 / std::sqrt(static_cast<double>(p.d_qk));
}

/// u: the caller's, or the mean key. The mean is taken over finite elements, because any u is right and a single NaN
/// key must not reach rows that do not see it.
inline std::vector<double> key_shift(const problem& p, const float* given, const head_rows& at, const matrix* k) {
  if (p.key_centring == key_centring::off) return {};
  std::vector<double> u(static_cast<std::size_t>(p.d_qk));
  for (std::int64_t c = 0; c < p.d_qk; ++c) {
    double& mean = u[static_cast<std::size_t>(c)];
    if (p.key_centring == key_centring::given) {
      mean = given[(at.document * at.heads + at.head) * p.d_qk + c];
      continue;
    }
    std::int64_t finite = 0;
    for (std::int64_t j = 0; k && j < k->rows(); ++j)
      if (std::isfinite((*k)(j, c))) mean += (*k)(j, c), ++finite;
    if (finite > 0) mean /= static_cast<double>(finite);
  }
  return u;
}

/// Inputs is forward_inputs or backward_inputs. Payloads that come in are of keys that were centred already.
template <class Inputs>
key_side load_keys(const problem& p, const rules& r, const Inputs& in, const document& doc, std::int64_t head) {
  const head_rows at = key_rows(p, doc, head);
  if (p.payload_inputs)
    return {key_shift(p, in.key_shift, at, nullptr), load_payload(in.k_payload, r, at, p.d_qk),
            load_payload(in.v_payload, r, at, p.d_v)};
  matrix k = load(in.k, at, p.d_qk);
  std::vector<double> u = key_shift(p, in.key_shift, at, &k);
  if (!u.empty())
    for (std::int64_t j = 0; j < k.rows(); ++j) add_weighted(k.row(j), -1, u.data(), p.d_qk);
  return {std::move(u), quantise(k, r, r.element), quantise(load(in.v, at, p.d_v), r, r.element)};
}

template <class Inputs>
query_side load_queries(const problem& p, const rules& r, const Inputs& in, const document& doc, std::int64_t head,
                        const std::vector<double>& u) {
  const head_rows at = query_rows(p, doc, head);
  query_side out;
  matrix as_given;
  if (p.payload_inputs) {
    out.q = load_payload(in.q_payload, r, at, p.d_qk);
    as_given = out.q.rowwise();
  } else {
    as_given = load(in.q, at, p.d_qk);
    out.q = quantise(as_given, r, r.element);
  }
  out.shift.resize(static_cast<std::size_t>(at.rows));
  if (!u.empty())
    for (std::int64_t i = 0; i < at.rows; ++i)
      out.shift[static_cast<std::size_t>(i)] = softmax_scale(p) * dot(as_given.row(i), u.data(), p.d_qk);
  if (p.sink) out.sink = in.sink[head];
  return out;
}

/// The scores of one query head against its keys, and what becomes of them.
class scores {
 public:
  scores(const problem& p, const rules& r, const document& doc, const query_side& q, const key_side& keys)
      : visible_(p, doc), q_(q), keys_(keys), r_(r), d_(p.d_qk), scale_(softmax_scale(p)), softcap_(p.softcap) {}

  key_range keys(std::int64_t i) const { return visible_.of(i); }

  /// s[j] for the visible keys j of row i. The other elements of s are left alone.
  void row(std::int64_t i, double* s) const {
    const key_range range = keys(i);
    for (std::int64_t j = range.begin; j < range.end; ++j) {
      double score = scale_ * dot(q_.q.rowwise().row(i), keys_.k.rowwise().row(j), d_);
      if (softcap_ != 0) score = softcap_ * std::tanh(score / softcap_);
      s[j] = std::numbers::log2e * score;
    }
  }
  /// The derivative of softcap * tanh(S / softcap), from its value: 1 - tanh^2.
  double softcap_slope(double s) const {
    if (softcap_ == 0) return 1;
    const double tanh = s / (std::numbers::log2e * softcap_);
    return 1 - tanh * tanh;
  }
  /// The maximum that a row's weights are relative to: an integer, except in the stale baseline, and exact in FP32.
  /// Recipe token folds V's scales into P, so that they take part. 0 without keys; the sink takes no part.
  double maximum(const key_range& range, const double* s) const {
    double m = -infinity;
    for (std::int64_t j = range.begin; j < range.end; ++j) m = std::max(m, s[j] + std::log2(weight_fold(j)));
    if (m == -infinity) return 0;
    if (r_.delta != policy::stale) m = std::ceil(m);
    // Never below the maximum, where FP32 has fewer digits than the score: weights would exceed 1.
    const float rounded = static_cast<float>(m);
    return rounded < m ? std::nextafter(rounded, std::numeric_limits<float>::infinity()) : rounded;
  }
  /// P^_ij relative to 2^M. The factor 2^8 puts the largest weights at the upper end of E4M3's range.
  double rounded_weight(std::int64_t j, double s, double m) const {
    return rounded_weight(j, 256 * std::exp2(s - m) * weight_fold(j));
  }
  /// The same from 2^8 * 2^(s - m) * fold_j.
  double rounded_weight(std::int64_t j, double folded) const {
    const double fold = weight_fold(j);
    // The weight of a key without V is only ever summed: there is nothing that it would have to be rounded with.
    return (fold == fold_of_zero ? folded : round_to(folded, r_.element)) / fold / 256;
  }
  /// log2 of the sink's weight relative to 2^M, against centred scores. -inf without a sink.
  double sink_log2(std::int64_t i, double m) const {
    return std::numbers::log2e * (q_.sink - q_.shift[static_cast<std::size_t>(i)]) - m;
  }

  /// V's scale as P takes it in. The scale of an all-zero token, 1, says nothing about V: 2^-64 keeps it out of M.
  double weight_fold(std::int64_t j) const {
    if (!keys_.v.folds) return 1;
    const double* v = keys_.v.columnwise().row(j);
    const bool zero = std::all_of(v, v + keys_.v.columnwise().cols(), [](double x) { return x == 0; });
    return zero ? fold_of_zero : keys_.v.fold(j);
  }

 private:
  static constexpr double fold_of_zero = 0x1p-64;

  visible_keys visible_;
  const query_side& q_;
  const key_side& keys_;
  const rules& r_;
  std::int64_t d_;
  double scale_, softcap_;
};

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
