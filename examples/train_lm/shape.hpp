// SPDX-License-Identifier: Apache-2.0
// How large a model is, and what goes through it in a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace train_lm {

using index = std::ptrdiff_t;

struct model_shape {
  index layers, width, heads, context, batch;

  static constexpr index vocabulary = 256;  // bytes
  static constexpr index expansion = 4;     // of the MLP
  index head_dim() const { return width / heads; }
  index tokens() const { return batch * context; }
};

/// Sequences of one step: tokens and, at each position, the byte that follows. [batch * context]
struct batch {
  std::vector<std::uint8_t> tokens, targets;
};

}  // namespace train_lm
