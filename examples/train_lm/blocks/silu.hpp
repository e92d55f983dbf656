// SPDX-License-Identifier: Apache-2.0
// y = x s with s = 1 / (1 + exp(-x)).  dx = dy s (1 + x (1 - s)).
#pragma once

#include "matrix.hpp"

namespace train_lm::silu {

inline void forward(in_ref x, out_ref y) { y.array() = x.array() * x.array().logistic(); }

/// In place: d holds dy on entry and dx on return.
inline void backward(in_ref x, out_ref d) {
  for (index i = 0; i < x.rows(); ++i) {
    const auto xi = x.row(i).array();
    const Eigen::Array<float, 1, Eigen::Dynamic> s = xi.logistic();
    d.row(i).array() *= s * (1.0f + xi * (1.0f - s));
  }
}

}  // namespace train_lm::silu
