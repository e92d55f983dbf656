// SPDX-License-Identifier: Apache-2.0
// Kernels of blocks under the checker: no race, nothing read before it is written, nothing out of bounds; and the same
// bits whatever the order of threads.
#pragma once

#include <octavo/backends/cuda/common/block_passes.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "sim_checked/one_head.hpp"

namespace sim_checked {

/// At d = 64 alone: the passes of the backend would compile d = 128, too.
template <class Config, class Schedules>
struct block_passes_of {
  using forward = octavo::backends::cuda_common::block_forward<Config, Schedules, 64>;
  using backward = octavo::backends::cuda_common::block_backward<Config, Schedules, 64>;
};

/// Runs Schedules on a causal problem under several seeds, with finite inputs and with a NaN in each.
template <class Backend, class Recipe, class Schedules>
void check_schedules(octavo::backends::sim::accumulation accumulator) {
  using config = octavo::config<Backend, Recipe, octavo::delta::matched>;
  octavo::problem p;
  p.s_q = 200, p.s_kv = 264;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  for (const bool with_nan : {false, true}) {
    std::vector<float> first;
    for (const std::uint64_t seed : {0, 1, 2}) {
      one_head head(p, with_nan);
      typename Backend::queue queue;
      queue.how.seed = seed;
      queue.how.resident = 3;
      queue.how.accumulator = accumulator;
      CHECK(run_passes<block_passes_of<config, Schedules>>(head, queue) == "");
      const std::vector<float> results = head.results();
      if (first.empty()) first = results;
      CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
      for (const octavo::kernel_counts& k : queue.kernels) CHECK(k.races_checked);
    }
  }
}

}  // namespace sim_checked
