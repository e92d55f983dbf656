// SPDX-License-Identifier: Apache-2.0
// What the command line asks for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "schedule.hpp"
#include "shape.hpp"

namespace train_lm {

struct options {
  std::filesystem::path text;  ///< empty: the default text
  std::filesystem::path out = "runs/train_lm";
  std::string recipe = "token";
  std::vector<std::string> arms;  ///< of arm_keys, each once
  bool key_centring = false;

  model_shape shape{.layers = 3, .width = 128, .heads = 2, .context = 256, .batch = 4};
  double rate = 8e-3;
  train_lm::schedule schedule = train_lm::schedule::cosine;
  int steps = 300;
  int seeds = 2;
  int threads = 2;
  bool self_check = false;
  std::filesystem::path captured_path_file;  ///< where a script wants to read the captured tensors' folder; empty: no

  std::size_t runs() const { return arms.size() * static_cast<std::size_t>(seeds); }
};

/// Nothing: the program has answered already (--help), with this exit code in `code`.
/// Throws input_error for a command line that cannot be used.
std::optional<options> parse(int argc, char** argv, int& code);

}  // namespace train_lm
