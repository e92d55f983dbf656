// SPDX-License-Identifier: Apache-2.0
// The kernels of cuda-simt whose registers count, for the compiler's report. Nothing here runs.
#include <octavo/backends/cuda/simt/machine.hpp>
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/forward.hpp>

using namespace octavo;
using namespace octavo::backends;
using M = nvidia::machine;

namespace {

template <class Kernel>
void* code() {
  return reinterpret_cast<void*>(&gpu::run_blocks<Kernel>);
}

template <class Recipe, int D>
void* kernels[] = {code<simt::forward_kernel<M, Recipe, delta::matched, D>>(),
                   code<simt::delta_sums_kernel<M, Recipe, D>>(),
                   code<simt::dq_kernel<M, Recipe, delta::matched, D>>(),
                   code<simt::dq_kernel<M, Recipe, delta::consistent, D>>(),
                   code<simt::dkv_kernel<M, Recipe, delta::matched, D>>(),
                   code<simt::dkv_kernel<M, Recipe, delta::consistent, D>>()};

}  // namespace

extern void** const of_every_shape[];
void** const of_every_shape[] = {kernels<recipe::tile, 64>, kernels<recipe::tile, 128>, kernels<recipe::token, 64>,
                                 kernels<recipe::token, 128>};
