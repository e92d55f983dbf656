// SPDX-License-Identifier: Apache-2.0
// y = x r g with r = 1 / sqrt(mean(x^2) + epsilon), row by row.
//
// dr/dx_c = -r^3 x_c / n, hence  dx = r (g dy) - x r^3 / n * sum(x g dy)  and  dg = sum over rows of dy x r.
#pragma once

#include "matrix.hpp"

namespace train_lm::rms_norm {

inline constexpr float epsilon = 1e-5f;

/// r [rows] is kept for the backward.
inline void forward(in_ref x, in_ref g, out_ref y, column& r) {
  const auto width = static_cast<float>(x.cols());
  r = ((x.rowwise().squaredNorm() / width).array() + epsilon).rsqrt();
  y.array() = (x.array().colwise() * r.array()).rowwise() * g.row(0).array();
}

/// dx is added to, not overwritten: x is the residual stream, which also flows past the block.
inline void backward(in_ref x, in_ref g, const column& r, in_ref dy, out_ref dg, out_ref dx) {
  const auto width = static_cast<float>(x.cols());
  dg = ((dy.array() * x.array()).colwise() * r.array()).colwise().sum();
  row scaled(x.cols());
  for (index i = 0; i < x.rows(); ++i) {
    scaled = g.row(0).cwiseProduct(dy.row(i));
    const float pull = scaled.dot(x.row(i)) * r(i) * r(i) * r(i) / width;
    dx.row(i) += r(i) * scaled - pull * x.row(i);
  }
}

}  // namespace train_lm::rms_norm
