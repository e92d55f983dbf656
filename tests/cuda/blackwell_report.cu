// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cuda/blackwell/passes.hpp>

#include "report.hpp"

using namespace octavo;
using namespace octavo::backends::blackwell;
using recipe::mx32;

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {kernels<schedules, mx32, 64>, kernels<schedules, mx32, 128>,
                                          stale_gradients<schedules, mx32, 64>, stale_gradients<schedules, mx32, 128>};

/// Its weights are no polynomials; those of all forwards on sm_103 are none.
extern const reported forward_of_consistent[];
const reported forward_of_consistent[] = {report<schedules::forward<mx32, octavo::delta::consistent, 64>>(),
                                          report<schedules::forward<mx32, octavo::delta::consistent, 128>>()};

extern const reported quantise[];
const reported quantise[] = {report<quantise_kernel<mx32, e4m3, 64>>(), report<quantise_kernel<mx32, e4m3, 128>>()};
