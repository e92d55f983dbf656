// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernels under the checker.
#include <octavo/backends/sim/blackwell.hpp>

#include "sim_checked/blocks.hpp"

TEST_CASE("checked: the Blackwell kernels are free of races and of accesses out of bounds, with any seed") {
  namespace backends = octavo::backends;
  sim_checked::check_schedules<backends::sim_cuda_blackwell, octavo::recipe::mx32, backends::blackwell::schedules>(
      backends::sim::accumulation::ideal);
}
