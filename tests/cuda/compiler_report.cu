// SPDX-License-Identifier: Apache-2.0
// The Hopper kernels whose registers count, for the compiler's report. Nothing here runs.
#include <octavo/backends/cuda/hopper/passes.hpp>
#include <octavo/backends/gpu/launch.hpp>

using namespace octavo;
using namespace octavo::backends;

namespace {

template <class Kernel>
void* code() {
  return reinterpret_cast<void*>(&gpu::run_blocks<Kernel>);
}

template <class Recipe, int D>
void* kernels[] = {code<hopper::forward_kernel<Recipe, delta::matched, D>>(),
                   code<hopper::delta_sums_kernel<Recipe, D>>(),
                   code<hopper::dq_kernel<Recipe, delta::matched, D>>(),
                   code<hopper::dq_kernel<Recipe, delta::consistent, D>>(),
                   code<hopper::dkv_kernel<Recipe, delta::matched, D>>(),
                   code<hopper::dkv_kernel<Recipe, delta::consistent, D>>()};

}  // namespace

extern void** const of_every_shape[];
void** const of_every_shape[] = {kernels<recipe::tile, 64>, kernels<recipe::tile, 128>, kernels<recipe::token, 64>,
                                 kernels<recipe::token, 128>};
