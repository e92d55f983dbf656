// SPDX-License-Identifier: Apache-2.0
// The whole forward from partial ones over disjoint keys. With M = max_r M_r and w_r = l_r 2^(M_r - M):
//
//     l = sum_r w_r      O = sum_r w_r O_r / l      LSE = log sum_r exp(LSE_r)
//
// l is the normaliser that O_r was divided by, so w_r / l is the right weight of a part, whatever rounding P went
// through.
#pragma once

#include <octavo/algorithm/pass_data.hpp>

OCTAVO_BEGIN_NAMESPACE

template <class B>
struct combine_kernel {
  static constexpr int M = B::tile_q;
  static constexpr int max_channels = B::max_head_dim;

  octavo::problem problem;
  documents q_docs;
  partial_forward parts[max_combined_parts];  ///< by value: the caller's list is host memory
  int count = 0;
  forward_outputs out;

  OCTAVO_HD std::int64_t items() const { return q_docs.slots(M) * problem.h_q; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const std::int64_t h = item % problem.h_q;
    const token_tile tile = q_docs.tile_at(item / problem.h_q, M);
    for (int i = 0; i < tile.tokens; ++i) row(tile.document, h, tile.first + i);
  }

 private:
  OCTAVO_HD void row(std::int64_t document, std::int64_t h, std::int64_t token) const {
    const std::int64_t at = q_docs.statistic(document, h, problem.h_q, token);
    const int d = static_cast<int>(problem.d_v);
    float m = minus_infinity, lse = minus_infinity;
    for (int r = 0; r < count; ++r)
      if (parts[r].l[at] != 0 && !(parts[r].m[at] <= m)) m = parts[r].m[at];
    const float shared = m == minus_infinity ? 0.0f : m;
    float sum[max_channels] = {}, part[max_channels], l = 0;
    for (int r = 0; r < count; ++r) {
      const float l_r = parts[r].l[at];
      if (l_r == 0) continue;  // no key of this part is allowed
      const float weight = l_r * B::exp2(parts[r].m[at] - shared);
      l += weight;
      read_elements(parts[r].o, element_offset(parts[r].o, q_docs, document, token, h), d, part);
      for (int c = 0; c < d; ++c) sum[c] += weighted(weight, part[c]);
      if (parts[r].lse != nullptr) lse = add_logs(lse, parts[r].lse[at]);
    }
    const float reciprocal = reciprocal_or_zero(l);
    for (int c = 0; c < d; ++c) sum[c] *= reciprocal;
    write_elements(out.o, element_offset(out.o, q_docs, document, token, h), d, sum);
    if (problem.o_residual) {
      for (int c = 0; c < d; ++c) sum[c] -= round_to(out.o.type, sum[c]);
      write_elements(out.o_residual, element_offset(out.o_residual, q_docs, document, token, h), d, sum);
    }
    if (out.lse != nullptr) out.lse[at] = lse;
    if (out.m != nullptr) out.m[at] = shared;
    if (out.l != nullptr) out.l[at] = l;
  }

  /// log(exp(a) + exp(b)).
  OCTAVO_HD static float add_logs(float a, float b) {
    const float high = a > b ? a : b, low = a > b ? b : a;
    if (low == minus_infinity || high - high != 0) return high;
    return high + std::log1p(std::exp(low - high));
  }
};

OCTAVO_END_NAMESPACE
