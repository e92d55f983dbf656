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

/// Forward and backward at d = 64 alone: the passes of the backend would compile d = 128, too.
std::string run(one_head& head, std::uint64_t seed) {
  sim_cuda_hopper::queue queue;
  queue.how = {.seed = seed, .resident = 3};
  octavo::backends::hopper::forward_pass<config, 64> forward;
  octavo::backends::hopper::backward_pass<config, 64> backward;
  const octavo::forward_inputs in = head.forward_inputs();
  const octavo::backward_inputs back = head.backward_inputs();

  octavo::detail::carver measure(nullptr), measure_backward(nullptr);
  octavo::backends::hopper::forward_pass<config, 64>{}.carve(measure, head.p, in, {});
  octavo::backends::hopper::backward_pass<config, 64>{}.carve(measure_backward, head.p, back, {}, true);
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

octavo::problem small(std::int64_t s_q, std::int64_t s_kv) {
  octavo::problem p;
  p.s_q = s_q, p.s_kv = s_kv;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  return p;
}

}  // namespace

TEST_CASE("checked: the Hopper kernels are free of races and of accesses out of bounds, with any seed") {
  std::vector<float> first;
  for (const std::uint64_t seed : {0, 1, 2}) {
    one_head head(small(200, 264));
    CHECK(run(head, seed) == "");
    const std::vector<float> results = head.results();
    if (first.empty()) first = results;
    CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
  }
}
