// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernels under the checker: no race, nothing read before it is written, nothing out of bounds; and the same
// bits whatever the order of threads.
#include <octavo/backends/sim/blackwell.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "sim_checked/passes.hpp"

using namespace sim_checked;
using checked_config =
    octavo::config<octavo::backends::sim_cuda_blackwell, octavo::recipe::mx32, octavo::delta::matched>;

TEST_CASE("checked: the Blackwell kernels are free of races and of accesses out of bounds, with any seed") {
  std::vector<float> first;
  for (const std::uint64_t seed : {0, 1, 2}) {
    one_head head(causal(200, 264));
    CHECK(run_passes<checked_config, octavo::backends::blackwell::schedules>(head, seed) == "");
    const std::vector<float> results = head.results();
    if (first.empty()) first = results;
    CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
  }
}
