// SPDX-License-Identifier: Apache-2.0
// loss = mean over rows of log sum_c exp(z_c) - z_target.  dz = (softmax(z) - one_hot(target)) / rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "matrix.hpp"

namespace train_lm::cross_entropy {

/// The loss. z [rows, classes] holds logits on entry and dloss/dz on return: the gradient costs nothing more here.
inline double forward_backward(std::span<const std::uint8_t> targets, out_ref z) {
  const auto scale = 1.0f / static_cast<float>(z.rows());
  double loss = 0;
  for (index i = 0; i < z.rows(); ++i) {
    auto zi = z.row(i).array();
    const index target = targets[static_cast<std::size_t>(i)];
    const float maximum = zi.maxCoeff(), logit = zi(target);
    zi = (zi - maximum).exp();  // at most 1: no overflow
    const float sum = zi.sum();
    loss += std::log(sum) + maximum - logit;
    zi *= scale / sum;
    zi(target) -= scale;
  }
  return loss / static_cast<double>(z.rows());
}

}  // namespace train_lm::cross_entropy
