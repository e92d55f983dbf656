// SPDX-License-Identifier: Apache-2.0
// mx32 on the lanes, over the block-scaled products of sm_120a. d 64 alone, to be quick.
#include <octavo/backends/cuda/simt/scaled_machine.hpp>

#include "simt_report.hpp"

using namespace octavo;
using schedules_here = schedules<backends::nvidia::scaled_machine>;

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {kernels<schedules_here, recipe::mx32, 64>};
