// SPDX-License-Identifier: Apache-2.0
// The Hopper kernels under the checker: no race, nothing read before it is written, nothing out of bounds; and the same
// bits whatever the order of threads.
#include <octavo/backends/sim/hopper.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "sim_checked/one_head.hpp"

namespace {

using namespace sim_checked;
using octavo::backends::sim_cuda_hopper;
using config = octavo::config<sim_cuda_hopper, octavo::recipe::tile, octavo::delta::matched>;

/// At d = 64 alone: the passes of the backend would compile d = 128, too.
struct passes {
  using forward = octavo::backends::hopper::forward_pass<config, 64>;
  using backward = octavo::backends::hopper::backward_pass<config, 64>;
};

octavo::problem small(std::int64_t s_q, std::int64_t s_kv) {
  octavo::problem p;
  p.s_q = s_q, p.s_kv = s_kv;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  return p;
}

}  // namespace

TEST_CASE("checked: the Hopper kernels are free of races and of accesses out of bounds, with any seed") {
  for (const bool with_nan : {false, true}) {
    std::vector<float> first;
    for (const std::uint64_t seed : {0, 1, 2}) {
      one_head head(small(200, 264), with_nan);
      sim_cuda_hopper::queue queue;
      queue.how.seed = seed;
      queue.how.resident = 3;
      CHECK(run_passes<passes>(head, queue) == "");
      const std::vector<float> results = head.results();
      if (first.empty()) first = results;
      CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
      for (const octavo::kernel_counts& k : queue.kernels) CHECK(k.races_checked);
    }
  }
}
