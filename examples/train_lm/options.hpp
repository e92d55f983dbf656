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
  std::vector<std::string> arms = {"bf16", "stale", "matched", "consistent"};
  bool key_centring = false;

  model_shape shape{.layers = 3, .width = 128, .heads = 2, .context = 256, .batch = 4};
  double rate = 8e-3;
  train_lm::schedule schedule = train_lm::schedule::cosine;
  int steps = 300;
  int seeds = 2;
  int threads = 2;
  bool self_check = false;
};

/// Nothing: the program has answered already (--help), with this exit code in `code`.
/// Throws input_error for a command line that cannot be used.
std::optional<options> parse(int argc, char** argv, int& code);

}  // namespace train_lm
