// SPDX-License-Identifier: Apache-2.0
// Causal multi-head attention of one layer: rounds to BF16 and calls the arm's config. No attention arithmetic here.
//
// Octavo's layout [b, s, h, d] is the layout [tokens, width] of the rest of the model, so nothing is transposed.
#pragma once

#include <octavo/numeric/bf16.hpp>

#include <memory>
#include <vector>

#include "arm.hpp"
#include "matrix.hpp"

namespace train_lm {

/// What all attention layers of a model share: the problem, who solves it, and the scratch memory.
struct attention_context {
  attention_context(const arm& a, const model_shape& shape);

  octavo::problem problem;
  arm config;
  octavo::workspace workspace;

 private:
  std::unique_ptr<std::byte[]> memory_;
};

class attention {
 public:
  explicit attention(const octavo::problem& p);

  /// qkv [tokens, 3 width] with RoPE applied -> o [tokens, width]
  void forward(attention_context& context, in_ref qkv, out_ref o);
  /// dout [tokens, width] -> dqkv [tokens, 3 width], overwritten
  void backward(attention_context& context, in_ref dout, out_ref dqkv);

  /// sum_i |sum_j dS_ij| / sum_ij |dS_ij| of the last backward: 0 in exact arithmetic (softmax is shift-invariant).
  /// NaN where dS is itself no more than the rounding noise of FP32.
  double row_sum_residual() const;

  // The tensors [b, s, h, d] of the last step, as octavo saw them.
  std::vector<octavo::bf16> q, k, v, o, dout;

 private:
  double product_of_norms() const;  // sum_i |dO_i| |O_i|

  std::vector<octavo::bf16> o_residual_;
  std::vector<float> m_, l_, row_sum_, l1_;  // [b, h, s]
  matrix dq_, dk_, dv_;                      // [tokens, width]
};

}  // namespace train_lm
