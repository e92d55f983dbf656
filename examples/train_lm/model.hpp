// SPDX-License-Identifier: Apache-2.0
// A decoder-only language model over bytes, forward and backward by hand:
//
//     x = E[token]
//     per layer:  x += attention(rope(rms_norm(x) Wqkv + b)) Wout
//                 x += silu(rms_norm(x) Wup) Wdown
//     loss = cross_entropy(rms_norm(x) Whead, next byte)
//
// FP32 throughout, except for what attention reads and writes.
#pragma once

#include <vector>

#include "blocks/attention.hpp"
#include "blocks/rope.hpp"
#include "parameters.hpp"

namespace train_lm {

class model {
 public:
  model(const model_shape& shape, const arm& a, random_source random);

  /// Mean loss in nats. The backward needs the forward's activations, so it belongs to the last forward.
  double forward(const batch& data);
  /// Overwrites gradients.
  void backward(const batch& data);

  const attention& attention_of_layer(index i) const { return layers_[static_cast<std::size_t>(i)].attend; }
  const model_shape& shape() const { return shape_; }

  parameters weights, gradients;

 private:
  /// What the backward needs of one layer's forward. Rows are tokens.
  struct layer {
    layer(const model_shape& shape, const octavo::problem& p);
    matrix x, normed, qkv, attended;              // x: the residual stream on entry
    matrix middle, middle_normed, up, activated;  // middle: the residual stream between attention and MLP
    column r, middle_r;                           // the norms' factors
    attention attend;
  };

  void forward(layer& l, const layer_views& w, out_ref next);
  void backward(layer& l, const layer_views& w, layer_views& g);

  model_shape shape_;
  attention_context context_;
  rope rope_;
  std::vector<layer> layers_;
  matrix last_, last_normed_, logits_;  // logits_ holds dlogits after the forward
  column last_r_;
  matrix dx_, dnarrow_, dwide_, dqkv_;  // gradients on their way down; dx_: of the residual stream
};

}  // namespace train_lm
