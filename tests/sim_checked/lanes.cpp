// SPDX-License-Identifier: Apache-2.0
// The lane-level kernels under the checker, on warps of 32 lanes and waves of 64: no race, nothing read before it is
// written, nothing out of bounds; and the same bits whatever the order of threads.
#include <octavo/backends/sim/cuda_simt.hpp>
#include <octavo/backends/sim/hip_cdna3.hpp>
#include <octavo/backends/sim/hip_cdna4.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "sim_checked/small_problem.hpp"

namespace {

using namespace sim_checked;
namespace simt = octavo::backends::simt;

template <class B, class M, class Recipe>
struct passes {
  using config = octavo::config<B, Recipe, octavo::delta::matched>;
  using forward = simt::forward_pass<config, M, 64>;
  using backward = simt::backward_pass<config, M, 64>;
};

/// Whether all seeds run without a fault and to the same bits.
template <class B, class M, class Recipe>
void check_seeds() {
  octavo::problem p;
  p.s_q = 140, p.s_kv = 200;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  for (const bool with_nan : {false, true}) {
    std::vector<float> first;
    for (const std::uint64_t seed : {0, 1, 2}) {
      small_problem head(p, with_nan);
      typename B::queue queue;
      queue.how.seed = seed;
      queue.how.resident = 3;
      CHECK(run_passes<passes<B, M, Recipe>>(head, queue) == "");
      const std::vector<float> results = head.results();
      if (first.empty()) first = results;
      CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
      for (const octavo::kernel_counts& k : queue.kernels) CHECK(k.races_checked);
    }
  }
}

}  // namespace

TEST_CASE("checked: the lane-level kernels on mma.sync, with any seed") {
  check_seeds<octavo::backends::sim_cuda_simt, octavo::backends::nvidia::machine, octavo::recipe::tile>();
}
TEST_CASE("checked: the lane-level kernels on CDNA3's matrix instructions, with any seed") {
  check_seeds<octavo::backends::sim_hip_cdna3, octavo::backends::cdna3::machine, octavo::recipe::tile>();
}
TEST_CASE("checked: the lane-level kernels on CDNA4's products with block scales, with any seed") {
  check_seeds<octavo::backends::sim_hip_cdna4, octavo::backends::cdna4::machine, octavo::recipe::mx32>();
}
