// SPDX-License-Identifier: Apache-2.0
// The lane-level kernels under the checker, on warps of 32 lanes and waves of 64: no race, nothing read before it is
// written, nothing out of bounds; and the same bits whatever the order of threads.
#include <octavo/backends/sim/cuda_simt.hpp>
#include <octavo/backends/sim/hip_cdna3.hpp>
#include <octavo/backends/sim/hip_cdna4.hpp>

#include <doctest/doctest.h>

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

template <class B, class M, class Recipe>
void check_head() {
  octavo::problem p;
  p.s_q = 140, p.s_kv = 200;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  for (const bool with_nan : {false, true})
    check_seeds<passes<B, M, Recipe>, B>([&] { return small_problem(p, with_nan); }, 3);
}

}  // namespace

TEST_CASE("checked: the lane-level kernels on mma.sync, with any seed") {
  check_head<octavo::backends::sim_cuda_simt, octavo::backends::nvidia::machine, octavo::recipe::tile>();
}
TEST_CASE("checked: the lane-level kernels on CDNA3's matrix instructions, with any seed") {
  check_head<octavo::backends::sim_hip_cdna3, octavo::backends::cdna3::machine, octavo::recipe::tile>();
}
TEST_CASE("checked: the lane-level kernels on CDNA4's products with block scales, with any seed") {
  check_head<octavo::backends::sim_hip_cdna4, octavo::backends::cdna4::machine, octavo::recipe::mx32>();
}
