// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cuda/simt/machine.hpp>

#include "simt_report.hpp"

using namespace octavo;
using schedules_here = schedules<backends::nvidia::machine>;

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {
    kernels<schedules_here, recipe::tile, 64>, kernels<schedules_here, recipe::tile, 128>,
    kernels<schedules_here, recipe::token, 64>, kernels<schedules_here, recipe::token, 128>};
