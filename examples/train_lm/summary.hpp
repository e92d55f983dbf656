// SPDX-License-Identifier: Apache-2.0
// The runs of an arm, condensed to what the table compares.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "trainer.hpp"

namespace train_lm {

/// Row-sum residuals and the curves' last points are means over this last part of the steps: one step alone is noise.
inline constexpr int tail_fraction = 10;  // a tenth

/// A mean that leaves NaN out: a row-sum residual that does not exist is no zero.
class mean_of_numbers {
 public:
  void add(double x) {
    if (std::isnan(x)) return;
    sum_ += x;
    ++count_;
  }
  double value() const;  ///< NaN without a number

 private:
  double sum_ = 0;
  int count_ = 0;
};

struct arm_summary {
  std::string name;
  std::vector<double> held_out{};  ///< per seed
  double mean = 0, variance = 0;   ///< of held_out over seeds; variance with n - 1
  double worst_row_sum = 0;        ///< mean over last steps and seeds, largest over layers; NaN where none has one
  double gradient_norm = 0;        ///< the largest after the first step, over seeds
  std::string verdict{};           ///< against the baseline; empty for the baseline itself and without one
  double difference = 0;           ///< of the means, to the baseline's
  double threshold = 0;            ///< what a difference has to exceed; NaN with one seed or a diverged run
};

/// One per arm, in the order of arms. The baseline is arms[0] where `has_baseline`.
std::vector<arm_summary> summarise(const std::vector<run_result>& runs, const std::vector<arm>& arms, const options& o,
                                   bool has_baseline);

/// Per layer, the mean over those of the last tenth of one run's steps that have one; NaN where none has.
std::vector<double> tail_row_sum(const run_result& run, index layers);
/// The largest gradient norm after the first step, whose gradient is that of random weights.
double largest_gradient_norm(const run_result& run);

}  // namespace train_lm
