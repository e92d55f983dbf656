// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace train_lm {

std::vector<double> tail_row_sum(const run_result& run, index layers) {
  std::vector<double> mean(static_cast<std::size_t>(layers), 0.0);
  const std::size_t n = run.steps.size(), tail = std::min(n, std::max<std::size_t>(n / tail_fraction, 1));
  for (std::size_t step = n - tail; step < n; ++step)
    for (std::size_t l = 0; l < mean.size(); ++l) mean[l] += run.steps[step].row_sum[l] / static_cast<double>(tail);
  return mean;
}

double largest_gradient_norm(const run_result& run) {
  double largest = 0;
  for (std::size_t step = 1; step < run.steps.size(); ++step)
    largest = std::max(largest, run.steps[step].gradient_norm);
  return largest;
}

namespace {

arm_summary condense(const std::vector<run_result>& runs, std::size_t arm, const std::string& name, index layers) {
  arm_summary s{.name = name, .row_sum = std::vector<double>(static_cast<std::size_t>(layers), 0.0)};
  for (const run_result& run : runs) {
    if (run.arm != arm) continue;
    s.held_out.push_back(run.held_out_loss);
    const std::vector<double> tail = tail_row_sum(run, layers);
    for (std::size_t l = 0; l < tail.size(); ++l) s.row_sum[l] += tail[l];
    s.gradient_norm = std::max(s.gradient_norm, largest_gradient_norm(run));
  }
  const auto n = static_cast<double>(s.held_out.size());
  for (double& x : s.row_sum) x /= n;
  s.worst_row_sum = *std::ranges::max_element(s.row_sum);
  s.mean = std::accumulate(s.held_out.begin(), s.held_out.end(), 0.0) / n;
  for (const double x : s.held_out) s.variance += (x - s.mean) * (x - s.mean) / std::max(n - 1, 1.0);
  return s;
}

}  // namespace

std::vector<arm_summary> summarise(const std::vector<run_result>& runs, const std::vector<arm>& arms, const options& o,
                                   bool has_baseline) {
  std::vector<arm_summary> all;
  for (std::size_t a = 0; a < arms.size(); ++a) all.push_back(condense(runs, a, arms[a].name, o.shape.layers));
  if (!has_baseline) return all;
  const arm_summary& base = all.front();
  for (std::size_t a = 1; a < all.size(); ++a) {
    arm_summary& s = all[a];
    s.difference = s.mean - base.mean;
    s.noise = 2 * std::sqrt((s.variance + base.variance) / 2);  // twice the pooled standard deviation of the two arms
    if (!std::isfinite(s.difference))
      s.verdict = "diverged";
    else if (o.seeds < 2)
      s.verdict = "one seed: no estimate";
    else if (std::abs(s.difference) <= s.noise)
      s.verdict = "inside seed noise";
    else
      s.verdict = s.difference < 0 ? "lower than bf16" : "higher than bf16";
  }
  return all;
}

}  // namespace train_lm
