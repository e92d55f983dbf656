// SPDX-License-Identifier: Apache-2.0
// y = x W + b.  dW = x^T dy,  db = sum of the rows of dy,  dx = dy W^T.
#pragma once

#include "matrix.hpp"

namespace train_lm::linear {

inline void forward(in_ref x, in_ref w, out_ref y) { y.noalias() = x * w; }

inline void forward(in_ref x, in_ref w, in_ref b, out_ref y) {
  y.noalias() = x * w;
  y.rowwise() += b.row(0);
}

/// Overwrites dw and dx: a parameter is used once per step, so nothing has to be cleared or added up.
inline void backward(in_ref x, in_ref w, in_ref dy, out_ref dw, out_ref dx) {
  dw.noalias() = x.transpose() * dy;
  dx.noalias() = dy * w.transpose();
}

inline void backward(in_ref x, in_ref w, in_ref dy, out_ref dw, out_ref db, out_ref dx) {
  backward(x, w, dy, dw, dx);
  db = dy.colwise().sum();
}

}  // namespace train_lm::linear
