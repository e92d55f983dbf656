// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include "blocks/cross_entropy.hpp"
#include "blocks/embedding.hpp"
#include "blocks/linear.hpp"
#include "blocks/rms_norm.hpp"
#include "blocks/silu.hpp"

namespace train_lm {

model::layer::layer(const model_shape& s, const octavo::problem& p)
    : x(s.tokens(), s.width),
      normed(x),
      qkv(s.tokens(), 3 * s.width),
      attended(x),
      middle(x),
      middle_normed(x),
      up(s.tokens(), s.expansion * s.width),
      activated(up),
      r(s.tokens()),
      middle_r(r),
      attend(p) {}

model::model(const model_shape& s, const arm& a, random_source random)
    : weights(s),
      gradients(s),
      shape_(s),
      context_(a, s),
      rope_(s.context, s.head_dim()),
      last_(s.tokens(), s.width),
      last_normed_(last_),
      logits_(s.tokens(), s.vocabulary),
      last_r_(s.tokens()),
      dx_(last_),
      dnarrow_(last_),
      dwide_(s.tokens(), s.expansion * s.width),
      dqkv_(s.tokens(), 3 * s.width) {
  for (index i = 0; i < s.layers; ++i) layers_.emplace_back(s, context_.problem);
  weights.initialise(random);
}

double model::forward(const batch& data) {
  const std::size_t n = layers_.size();
  embedding::forward(data.tokens, weights.embedding, layers_[0].x);
  for (std::size_t i = 0; i < n; ++i) forward(layers_[i], weights.layers[i], i + 1 < n ? layers_[i + 1].x : last_);
  rms_norm::forward(last_, weights.final_norm, last_normed_, last_r_);
  linear::forward(last_normed_, weights.head, logits_);
  return cross_entropy::forward_backward(data.targets, logits_);
}

void model::forward(layer& l, const layer_views& w, out_ref next) {
  const auto query_and_key = l.qkv.leftCols(2 * shape_.width);
  rms_norm::forward(l.x, w.attention_norm, l.normed, l.r);
  linear::forward(l.normed, w.qkv, w.qkv_bias, l.qkv);
  rope_.forward(query_and_key);
  l.attend.forward(context_, l.qkv, l.attended);
  linear::forward(l.attended, w.attention_out, l.middle);
  l.middle += l.x;

  rms_norm::forward(l.middle, w.mlp_norm, l.middle_normed, l.middle_r);
  linear::forward(l.middle_normed, w.mlp_up, l.up);
  silu::forward(l.up, l.activated);
  linear::forward(l.activated, w.mlp_down, next);
  next += l.middle;
}

void model::backward(const batch& data) {
  linear::backward(last_normed_, weights.head, logits_, gradients.head, dnarrow_);
  dx_.setZero();
  rms_norm::backward(last_, weights.final_norm, last_r_, dnarrow_, gradients.final_norm, dx_);
  for (std::size_t i = layers_.size(); i-- > 0;) backward(layers_[i], weights.layers[i], gradients.layers[i]);
  embedding::backward(data.tokens, dx_, gradients.embedding);
}

// dx_ comes in as the gradient of the layer's result and leaves as that of its input: each norm adds to it what flows
// through its branch.
void model::backward(layer& l, const layer_views& w, layer_views& g) {
  linear::backward(l.activated, w.mlp_down, dx_, g.mlp_down, dwide_);
  silu::backward(l.up, dwide_);
  linear::backward(l.middle_normed, w.mlp_up, dwide_, g.mlp_up, dnarrow_);
  rms_norm::backward(l.middle, w.mlp_norm, l.middle_r, dnarrow_, g.mlp_norm, dx_);

  linear::backward(l.attended, w.attention_out, dx_, g.attention_out, dnarrow_);
  l.attend.backward(context_, dnarrow_, dqkv_);
  rope_.backward(dqkv_.leftCols(2 * shape_.width));
  linear::backward(l.normed, w.qkv, dqkv_, g.qkv, g.qkv_bias, dnarrow_);
  rms_norm::backward(l.x, w.attention_norm, l.r, dnarrow_, g.attention_norm, dx_);
}

}  // namespace train_lm
