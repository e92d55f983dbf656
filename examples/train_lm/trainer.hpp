// SPDX-License-Identifier: Apache-2.0
// One run: one arm from one seed. Single-threaded and a function of its arguments alone.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "arm.hpp"
#include "captured.hpp"
#include "corpus.hpp"
#include "options.hpp"

namespace train_lm {

struct step_record {
  double loss = 0;                ///< on the batch of this step, before its update, in nats per byte
  double gradient_norm = 0;       ///< before clipping
  std::vector<double> row_sum{};  ///< per layer: sum_i |sum_j dS_ij| / sum_ij |dS_ij|; NaN: see blocks/attention.hpp
};

struct run_result {
  std::size_t arm = 0;  ///< its place in the list of arms
  int seed = 0;
  std::vector<step_record> steps{};  ///< ends early where the loss is no longer finite
  double held_out_loss = 0;          ///< NaN then
  double seconds = 0;
  std::shared_ptr<const captured_tensors> captured{};  ///< where the request asked for it and the run did not diverge

  bool diverged(int planned) const { return static_cast<int>(steps.size()) < planned; }
};

struct run_request {
  std::size_t arm = 0;
  int seed = 0;
  bool capture = false;  ///< keep what the deepest layer's attention saw in the last step
};

using step_observer = std::function<void(int step, double loss)>;

run_result train(const options& o, const arm& a, const run_request& request, const corpus& text,
                 const step_observer& observe);

}  // namespace train_lm
