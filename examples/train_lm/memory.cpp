// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>

namespace train_lm {
namespace {

// In double: what is counted may be larger than any integer.
double floats_of_run(const model_shape& s) {
  const auto width = static_cast<double>(s.width), layers = static_cast<double>(s.layers);
  const double tokens = static_cast<double>(s.batch) * static_cast<double>(s.context);
  const double parameters = 2 * s.vocabulary * width + layers * (12 * width * width + 5 * width);
  const double with_gradient_and_moments = 4 * parameters;
  // Per token: 22 rows of `width` in a layer, attention's tensors in BF16 and FP32 included; gradients on their way
  // down and attention's scratch, shared by the layers; logits.
  const double activations = tokens * (layers * (22 * width + 4 * static_cast<double>(s.heads)) + 16 * width +
                                       static_cast<double>(s.vocabulary));
  return with_gradient_and_moments + activations;
}

}  // namespace

double gigabytes_of(const options& o) {
  const auto runs = static_cast<double>(o.runs());
  const double side_by_side = std::min(runs, static_cast<double>(o.threads));
  const double bytes_of_record = 64 + 8 * static_cast<double>(o.shape.layers);
  const double bytes = side_by_side * floats_of_run(o.shape) * 4 + runs * o.steps * bytes_of_record;
  return bytes / (1 << 30);
}

}  // namespace train_lm
