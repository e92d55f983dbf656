// SPDX-License-Identifier: Apache-2.0
// All parameters of a model in one flat vector, with a named matrix view for each. Gradients have the same shape, so
// the optimiser, the clipping and the self-check are loops over one array.
#pragma once

#include <string>
#include <vector>

#include "matrix.hpp"
#include "random.hpp"
#include "shape.hpp"

namespace train_lm {

struct layer_views {
  view attention_norm;  // [1, width]
  view qkv, qkv_bias;   // [width, 3 width], [1, 3 width]: query, key, value side by side
  view attention_out;   // [width, width]
  view mlp_norm;        // [1, width]
  view mlp_up;          // [width, 4 width]
  view mlp_down;        // [4 width, width]
};

/// Eigen's own memory is aligned to its vectors, and every tensor in it, since all sizes are multiples of 32. Sums over
/// it are the same from run to run; over unaligned memory their order would depend on the address.
using flat = Eigen::ArrayXf;

/// One tensor inside the flat vector.
struct tensor_info {
  std::string name;
  index offset, rows, cols;
  float mean, deviation;  ///< of its initial values

  index size() const { return rows * cols; }
  bool decays() const { return rows > 1; }  ///< weight decay is for matrices, not for norms and biases
};

class parameters {
 public:
  explicit parameters(const model_shape& shape);
  parameters(const parameters&) = delete;  // the views point into values
  parameters& operator=(const parameters&) = delete;

  void initialise(random_source random);

  std::vector<tensor_info> tensors;  ///< in the order of values
  flat values;                       ///< all of them
  std::vector<layer_views> layers;
  view embedding;   // [256, width]
  view final_norm;  // [1, width]
  view head;        // [width, 256], not tied to the embedding
};

}  // namespace train_lm
