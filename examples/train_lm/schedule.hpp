// SPDX-License-Identifier: Apache-2.0
// The learning rate over the steps.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace train_lm {

enum class schedule { constant, cosine };

/// Of step 0, 1, ...: a linear warm-up over the first tenth, then constant or a cosine down to a tenth of the peak.
inline double learning_rate(double peak, schedule kind, int step, int steps) {
  const int warm_up = std::max(steps / 10, 1);
  if (step < warm_up) return peak * (step + 1) / warm_up;
  if (kind == schedule::constant) return peak;
  const double progress = static_cast<double>(step - warm_up) / (steps - warm_up);
  return peak * (0.55 + 0.45 * std::cos(std::numbers::pi * progress));
}

}  // namespace train_lm
