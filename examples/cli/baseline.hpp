// SPDX-License-Identifier: Apache-2.0
// The opponent of `octavo bench --baseline`: unfused attention in FP32, every product Eigen's, the scores in memory.
#pragma once

#include <octavo/tensor/problem.hpp>

#include <vector>

namespace cli {

/// Contiguous tensors [b, s, h, d]. Uses the mask's causal alignment, the scale and grouped queries of the problem.
struct baseline {
  octavo::problem p;
  std::vector<float> q, k, v, dout;

  std::vector<float> o{}, lse{};        ///< forward
  std::vector<float> dq{}, dk{}, dv{};  ///< backward

  void forward(int threads);
  /// Forms P again from LSE, as a fused backward does: five products against the forward's two.
  void backward(int threads);
};

}  // namespace cli
