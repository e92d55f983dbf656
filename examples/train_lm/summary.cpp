// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "student_t.hpp"

namespace train_lm {

double mean_of_numbers::value() const { return count_ > 0 ? sum_ / count_ : std::numeric_limits<double>::quiet_NaN(); }

std::vector<double> tail_row_sum(const run_result& run, index layers) {
  const std::size_t n = run.steps.size(), tail = std::min(n, std::max<std::size_t>(n / tail_fraction, 1));
  std::vector<double> means;
  for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l) {
    mean_of_numbers mean;
    for (std::size_t step = n - tail; step < n; ++step) mean.add(run.steps[step].row_sum[l]);
    means.push_back(mean.value());
  }
  return means;
}

double largest_gradient_norm(const run_result& run) {
  double largest = 0;
  for (std::size_t step = 1; step < run.steps.size(); ++step)
    largest = std::max(largest, run.steps[step].gradient_norm);
  return largest;
}

namespace {

arm_summary condense(const std::vector<run_result>& runs, std::size_t arm, const std::string& name, index layers) {
  arm_summary s{.name = name};
  std::vector<mean_of_numbers> row_sum(static_cast<std::size_t>(layers));
  for (const run_result& run : runs) {
    if (run.arm != arm) continue;
    s.held_out.push_back(run.held_out_loss);
    const std::vector<double> tail = tail_row_sum(run, layers);
    for (std::size_t l = 0; l < tail.size(); ++l) row_sum[l].add(tail[l]);
    s.gradient_norm = std::max(s.gradient_norm, largest_gradient_norm(run));
  }
  s.worst_row_sum = std::numeric_limits<double>::quiet_NaN();
  for (const mean_of_numbers& layer : row_sum) s.worst_row_sum = std::fmax(s.worst_row_sum, layer.value());
  const auto n = static_cast<double>(s.held_out.size());
  s.mean = std::accumulate(s.held_out.begin(), s.held_out.end(), 0.0) / n;
  for (const double x : s.held_out) s.variance += (x - s.mean) * (x - s.mean) / std::max(n - 1, 1.0);
  return s;
}

/// Two samples of n runs each, their variances pooled: the difference of the means that Student's t-test at 5 %,
/// two-sided, does not put down to the seeds.
double threshold(const arm_summary& a, const arm_summary& b, int n) {
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  const double pooled = std::sqrt((a.variance + b.variance) / 2);
  return student_t_975(2 * n - 2) * pooled * std::sqrt(2.0 / n);
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
    s.threshold = threshold(s, base, o.seeds);
    if (!std::isfinite(s.difference))
      s.verdict = "diverged";
    else if (o.seeds < 2)
      s.verdict = "one seed: no verdict";
    else if (std::abs(s.difference) <= s.threshold)
      s.verdict = "inside seed noise";
    else
      s.verdict = s.difference < 0 ? "lower than bf16" : "higher than bf16";
  }
  return all;
}

}  // namespace train_lm
