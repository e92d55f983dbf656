// SPDX-License-Identifier: Apache-2.0
// x_i = E[token_i].  dE[t] = sum of dx_i over the tokens i that are t.
#pragma once

#include <cstdint>
#include <span>

#include "matrix.hpp"

namespace train_lm::embedding {

inline void forward(std::span<const std::uint8_t> tokens, in_ref table, out_ref x) {
  for (index i = 0; i < x.rows(); ++i) x.row(i) = table.row(tokens[static_cast<std::size_t>(i)]);
}

inline void backward(std::span<const std::uint8_t> tokens, in_ref dx, out_ref dtable) {
  dtable.setZero();
  for (index i = 0; i < dx.rows(); ++i) dtable.row(tokens[static_cast<std::size_t>(i)]) += dx.row(i);
}

}  // namespace train_lm::embedding
