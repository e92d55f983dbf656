// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

#include <cmath>
#include <new>

namespace train_lm {
namespace {

/// The single list of all tensors. take(name, rows, cols, mean, deviation) is called for each, in order.
template <class Take>
void for_each_tensor(const model_shape& s, Take take) {
  const index w = s.width, wide = s.expansion * s.width;
  const auto fan_in = [](index n) { return 1.0f / std::sqrt(static_cast<float>(n)); };
  // Each layer adds twice to the residual stream: smaller steps keep its size independent of the depth.
  const float branch = fan_in(2 * s.layers);
  take("embedding", s.vocabulary, w, 0.0f, 0.5f);
  for (index i = 0; i < s.layers; ++i) {
    const std::string layer = "layer" + std::to_string(i) + ".";
    take(layer + "attention_norm", 1, w, 1.0f, 0.0f);
    take(layer + "qkv", w, 3 * w, 0.0f, fan_in(w));
    take(layer + "qkv_bias", 1, 3 * w, 0.0f, 0.0f);
    take(layer + "attention_out", w, w, 0.0f, branch * fan_in(w));
    take(layer + "mlp_norm", 1, w, 1.0f, 0.0f);
    take(layer + "mlp_up", w, wide, 0.0f, fan_in(w));
    take(layer + "mlp_down", wide, w, 0.0f, branch * fan_in(wide));
  }
  take("final_norm", 1, w, 1.0f, 0.0f);
  take("head", w, s.vocabulary, 0.0f, 0.5f * fan_in(w));
}

}  // namespace

parameters::parameters(const model_shape& shape)
    : embedding(nullptr, 0, 0), final_norm(nullptr, 0, 0), head(nullptr, 0, 0) {
  index total = 0;
  for_each_tensor(shape, [&](std::string name, index rows, index cols, float mean, float deviation) {
    tensors.push_back({std::move(name), total, rows, cols, mean, deviation});
    total += rows * cols;
  });
  values = flat::Zero(total);

  std::size_t next = 0;
  const auto take = [&] {
    const tensor_info& t = tensors[next++];
    return view(values.data() + t.offset, t.rows, t.cols);
  };
  // A Map is not assignable to another place; placement new is Eigen's documented way to aim it.
  new (&embedding) view(take());
  for (index i = 0; i < shape.layers; ++i)  // braces: evaluated from left to right
    layers.push_back(layer_views{take(), take(), take(), take(), take(), take(), take()});
  new (&final_norm) view(take());
  new (&head) view(take());
}

void parameters::initialise(random_source random) {
  for (const tensor_info& t : tensors)
    for (index i = 0; i < t.size(); ++i)
      values(t.offset + i) = t.deviation == 0 ? t.mean : t.mean + t.deviation * random.normal();
}

}  // namespace train_lm
