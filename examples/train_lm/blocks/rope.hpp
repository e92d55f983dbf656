// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding: channel pairs (c, c + d/2) of a head turn by position * base^(-2c/d).
//
// A rotation is orthogonal, so its backward is the rotation by the opposite angle.
#pragma once

#include <cmath>

#include "matrix.hpp"

namespace train_lm {

class rope {
 public:
  rope(index context, index head_dim) : cosine_(context, head_dim / 2), sine_(context, head_dim / 2) {
    constexpr double base = 10000.0;
    for (index t = 0; t < context; ++t)
      for (index c = 0; c < head_dim / 2; ++c) {
        const double angle =
            static_cast<double>(t) * std::pow(base, -2.0 * static_cast<double>(c) / static_cast<double>(head_dim));
        cosine_(t, c) = static_cast<float>(std::cos(angle));
        sine_(t, c) = static_cast<float>(std::sin(angle));
      }
  }

  /// x [batch * context, heads * d], in place.
  void forward(out_ref x) const { turn(x, 1.0f); }
  void backward(out_ref dx) const { turn(dx, -1.0f); }

 private:
  void turn(out_ref x, float sign) const {
    const index context = cosine_.rows(), half = cosine_.cols();
    row first(half);
    for (index i = 0; i < x.rows(); ++i) {
      const auto c = cosine_.row(i % context).array();
      const auto s = sign * sine_.row(i % context).array();
      for (index begin = 0; begin < x.cols(); begin += 2 * half) {
        auto a = x.row(i).segment(begin, half).array();
        auto b = x.row(i).segment(begin + half, half).array();
        first = a;
        a = first.array() * c - b * s;
        b = first.array() * s + b * c;
      }
    }
  }

  matrix cosine_, sine_;  // [context, d/2]
};

}  // namespace train_lm
