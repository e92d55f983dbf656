// SPDX-License-Identifier: Apache-2.0
// The gradient of a sink, one number per query head: a sum over all rows, which have theirs from the row terms.
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/algorithm/carver.hpp>

OCTAVO_BEGIN_NAMESPACE

/// Sums of d(sink) over the rows of every part: [slots][h_q].
template <class B, class Recipe>
struct sink_sums_kernel {
  backward_data<Recipe> data;
  double* sums = nullptr;

  OCTAVO_HD std::int64_t items() const { return data.forward.q_docs.slots(part_tokens) * data.forward.problem.h_q; }
  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const documents& docs = data.forward.q_docs;
    const std::int64_t h = item % data.forward.problem.h_q;
    const token_tile part = docs.tile_at(item / data.forward.problem.h_q, part_tokens);
    double sum = 0;
    if (!docs.is_tail(part.document))
      for (int i = 0; i < part.tokens; ++i)
        sum += sink_gradient<B>(data, part.document, h, data.forward.statistic(part.document, h, part.first + i));
    sums[item] = sum;
  }
};

/// d(sink) per query head, from the sums of its parts in a fixed order.
template <class B, class Recipe>
struct sink_gradient_kernel {
  backward_data<Recipe> data;
  const double* sums = nullptr;
  float* dsink = nullptr;  ///< [h_q]

  OCTAVO_HD std::int64_t items() const { return data.forward.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t h) const {
    const std::int64_t parts = data.forward.q_docs.slots(part_tokens);
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * data.forward.problem.h_q + h];
    dsink[h] = static_cast<float>(sum);
  }
};

/// What d(sink) needs in a pass: its part of the workspace, and its kernels in the order in which they run.
template <class B>
struct sink_sums {
  double* sums = nullptr;  ///< null without a sink

  void carve(detail::carver& memory, const problem& p, const documents& queries) {
    if (p.sink) sums = memory.take<double>(queries.slots(part_tokens) * p.h_q);
  }
  /// run: runs a kernel. After the row terms.
  template <class Run, class Recipe>
  void find_gradient(Run run, const backward_data<Recipe>& data, float* dsink) const {
    if (!data.forward.problem.sink) return;
    run(sink_sums_kernel<B, Recipe>{data, sums});
    run(sink_gradient_kernel<B, Recipe>{data, sums, dsink});
  }
};

OCTAVO_END_NAMESPACE
