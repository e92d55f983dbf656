// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernels of d 128, whose forward and dK dV fill tensor memory, under the checker.
#include <octavo/backends/sim/blackwell.hpp>

#include "sim_checked/blocks.hpp"

namespace {

template <class Delta>
void check(sim_checked::small_problem (*make)(std::int64_t, bool)) {
  namespace backends = octavo::backends;
  sim_checked::check_schedules<backends::sim_cuda_blackwell, octavo::recipe::mx32, Delta,
                               backends::blackwell::schedules, 128>(make);
}

}  // namespace

TEST_CASE("checked: the Blackwell kernels are free of races and of accesses out of bounds: d 128, matched, packed") {
  check<octavo::delta::matched>(sim_checked::packed_group);
}
TEST_CASE(
    "checked: the Blackwell kernels are free of races and of accesses out of bounds: d 128, more tiles than stages") {
  check<octavo::delta::matched>(sim_checked::long_row);
  check<octavo::delta::matched>(sim_checked::long_column);
}
TEST_CASE("checked: the Blackwell kernels are free of races and of accesses out of bounds: d 128, consistent") {
  check<octavo::delta::consistent>(sim_checked::causal_head);
}
