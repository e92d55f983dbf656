// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cuda/blackwell/passes.hpp>

#include "report.hpp"

using namespace octavo;
using namespace octavo::backends::blackwell;
using recipe::mx32;

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {kernels<schedules, mx32, 64>, kernels<schedules, mx32, 128>,
                                          stale_gradients<schedules, mx32, 64>, stale_gradients<schedules, mx32, 128>};

/// Without polynomials: the forward of consistent, and both on sm_103.
extern const reported by_special_units[];
const reported by_special_units[] = {report<schedules::forward<mx32, octavo::delta::consistent, 64>>(),
                                     report<schedules::forward<mx32, octavo::delta::consistent, 128>>(),
                                     report<octavo::backends::blackwell::delta_sums_kernel<mx32, 64, false>>(),
                                     report<octavo::backends::blackwell::delta_sums_kernel<mx32, 128, false>>()};

extern const reported quantise[];
const reported quantise[] = {report<quantise_kernel<mx32, e4m3, 64>>(), report<quantise_kernel<mx32, e4m3, 128>>()};
