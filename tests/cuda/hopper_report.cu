// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cuda/hopper/passes.hpp>

#include "report.hpp"

using namespace octavo;
using backends::hopper::schedules;

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {kernels<schedules, recipe::tile, 64>, kernels<schedules, recipe::tile, 128>,
                                          kernels<schedules, recipe::token, 64>,
                                          kernels<schedules, recipe::token, 128>};
