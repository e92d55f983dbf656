// SPDX-License-Identifier: Apache-2.0
// The text as bytes, split 90 to 10 by blocks into a part to train on and a part to judge by.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "random.hpp"
#include "shape.hpp"

namespace train_lm {

class corpus {
 public:
  /// Every tenth block of the text is held out. Throws input_error where there is not enough text.
  corpus(std::vector<std::uint8_t> text, index context);

  /// Windows at random places of the training text.
  void draw(random_source& random, const model_shape& shape, batch& out) const;

  /// The fixed held-out windows, in batches of the shape (the last few windows are left out where they fill none).
  std::vector<batch> held_out(const model_shape& shape) const;

  std::size_t bytes() const { return bytes_; }
  /// Of the whole text in nats per byte: the loss of a model that knows how often each byte occurs and nothing else.
  double unigram_entropy() const { return unigram_entropy_; }

 private:
  std::vector<std::uint8_t> train_;
  std::vector<std::vector<std::uint8_t>> windows_;  // [context + 1] each
  std::size_t bytes_;
  double unigram_entropy_;
};

/// The file, or without one the regular files of /usr/share/common-licenses, sorted by name.
std::vector<std::uint8_t> read_text(const std::filesystem::path& file);

}  // namespace train_lm
