// SPDX-License-Identifier: Apache-2.0
// The lane-level kernels of d 128 with what the plainest run does not reach, under the checker: `token`, consistent,
// windows, and documents of odd lengths whose query heads share keys.
#include <octavo/backends/sim/cuda_simt.hpp>
#include <octavo/backends/sim/hip_cdna3.hpp>

#include <doctest/doctest.h>

#include <cstdint>

#include "sim_checked/blocks.hpp"

namespace {

using namespace sim_checked;
namespace simt = octavo::backends::simt;

/// Rows that see a band of keys, and a softcap, whose way is one of its own.
small_problem window_with_softcap(std::int64_t d, bool with_nan) {
  octavo::problem p;
  p.s_q = 70, p.s_kv = 150, p.d_qk = p.d_v = d;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.mask.window_left = 45;
  p.softcap = 4;
  p.deterministic = true;
  return {p, with_nan};
}

template <class B, class M, class Delta>
struct passes {
  using config = octavo::config<B, octavo::recipe::token, Delta>;
  using forward = simt::forward_pass<config, M, 128>;
  using backward = simt::backward_pass<config, M, 128>;
};

template <class B, class M, class Delta>
void check(small_problem (*make)(std::int64_t, bool), bool with_nan) {
  check_seeds<passes<B, M, Delta>, B>([&] { return make(128, with_nan); }, 2);
}

}  // namespace

TEST_CASE("checked: the lane-level kernels on mma.sync, token and consistent at d 128, windows and documents") {
  using octavo::backends::sim_cuda_simt, octavo::backends::nvidia::machine, octavo::delta::consistent;
  check<sim_cuda_simt, machine, consistent>(window_with_softcap, false);
  check<sim_cuda_simt, machine, consistent>(packed_group, true);
}
TEST_CASE(
    "checked: the lane-level kernels on CDNA3's matrix instructions, token and consistent at d 128, windows and "
    "documents") {
  using octavo::backends::sim_hip_cdna3, octavo::backends::cdna3::machine, octavo::delta::consistent;
  check<sim_hip_cdna3, machine, consistent>(window_with_softcap, false);
  check<sim_hip_cdna3, machine, consistent>(packed_group, true);
}
