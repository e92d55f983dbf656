// SPDX-License-Identifier: Apache-2.0
// The Hopper kernels under the checker.
#include <octavo/backends/sim/hopper.hpp>

#include "sim_checked/blocks.hpp"

TEST_CASE("checked: the Hopper kernels are free of races and of accesses out of bounds, with any seed") {
  namespace backends = octavo::backends;
  sim_checked::check_schedules<backends::sim_cuda_hopper, octavo::recipe::tile, octavo::delta::matched,
                               backends::hopper::schedules>(sim_checked::causal_head);
}
