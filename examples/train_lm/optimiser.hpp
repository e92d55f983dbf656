// SPDX-License-Identifier: Apache-2.0
// AdamW (decoupled weight decay) on the flat vector of parameters, with clipping by the global norm.
#pragma once

#include <cmath>

#include "parameters.hpp"

namespace train_lm {

class adamw {
 public:
  explicit adamw(const parameters& p) : first_(flat::Zero(p.values.size())), second_(first_) {}

  /// The norm of the gradients before clipping. They are scaled in place to a norm of at most `max_norm`.
  static double clip(parameters& gradients, double max_norm) {
    flat& g = gradients.values;
    double square = 0;  // tensor by tensor in float, their sum in double
    for (const tensor_info& t : gradients.tensors)
      square += static_cast<double>(g.segment(t.offset, t.size()).square().sum());
    const double norm = std::sqrt(square);
    if (norm > max_norm) g *= static_cast<float>(max_norm / norm);
    return norm;
  }

  void step(parameters& weights, const parameters& gradients, double rate) {
    ++count_;
    // The moments start at zero; dividing by these makes them unbiased.
    const double first_mass = 1 - std::pow(first_decay, count_), second_mass = 1 - std::pow(second_decay, count_);
    const auto scale = static_cast<float>(rate / first_mass), unbias = static_cast<float>(1 / second_mass);
    for (const tensor_info& t : weights.tensors) {
      auto w = weights.values.segment(t.offset, t.size());
      const auto g = gradients.values.segment(t.offset, t.size());
      auto m = first_.segment(t.offset, t.size());
      auto v = second_.segment(t.offset, t.size());
      m = static_cast<float>(first_decay) * m + static_cast<float>(1 - first_decay) * g;
      v = static_cast<float>(second_decay) * v + static_cast<float>(1 - second_decay) * g.square();
      if (t.decays()) w *= static_cast<float>(1 - rate * weight_decay);
      w -= scale * m / ((v * unbias).sqrt() + epsilon);
    }
  }

 private:
  static constexpr double first_decay = 0.9, second_decay = 0.95, weight_decay = 0.1;
  static constexpr float epsilon = 1e-8f;

  flat first_, second_;
  int count_ = 0;
};

}  // namespace train_lm
