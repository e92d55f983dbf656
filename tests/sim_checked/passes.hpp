// SPDX-License-Identifier: Apache-2.0
// Forward and backward of one head at d = 64 alone: the passes of a backend would compile d = 128, too.
#pragma once

#include <octavo/backends/cuda/common/block_passes.hpp>

#include <cstdint>
#include <string>

#include "sim_checked/one_head.hpp"

namespace sim_checked {

/// Config: of a simulated backend that runs Schedules. Returns the fault, if there is one.
template <class Config, class Schedules>
std::string run_passes(one_head& head, std::uint64_t seed) {
  typename Config::backend::queue queue;
  queue.how = {.seed = seed, .resident = 3};
  octavo::backends::cuda_common::block_forward<Config, Schedules, 64> forward, measured_forward;
  octavo::backends::cuda_common::block_backward<Config, Schedules, 64> backward, measured_backward;
  const octavo::forward_inputs in = head.forward_inputs();
  const octavo::backward_inputs back = head.backward_inputs();

  octavo::detail::carver measure(nullptr), measure_backward(nullptr);
  measured_forward.carve(measure, head.p, in, {});
  measured_backward.carve(measure_backward, head.p, back, {}, true);
  device_array<char> scratch(static_cast<std::int64_t>(measure.used())),
      scratch_backward(static_cast<std::int64_t>(measure_backward.used()));

  octavo::detail::carver memory(scratch.data()), memory_backward(scratch_backward.data());
  const octavo::forward_outputs out = head.forward_outputs();
  forward.carve(memory, head.p, in, out);
  octavo::status done = forward.run(queue, head.p, in, out);
  if (!done.ok()) return done.message.c_str();
  backward.carve(memory_backward, head.p, back, {}, true);
  done = backward.run(queue, head.p, back, head.backward_outputs());
  return done.message.c_str();
}

inline octavo::problem causal(std::int64_t s_q, std::int64_t s_kv) {
  octavo::problem p;
  p.s_q = s_q, p.s_kv = s_kv;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  return p;
}

}  // namespace sim_checked
