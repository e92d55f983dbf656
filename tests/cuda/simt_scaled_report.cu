// SPDX-License-Identifier: Apache-2.0
// mx32 on the block-scaled products of sm_120a, for the compiler's report. Nothing here runs.
#include <octavo/backends/cuda/simt/scaled_machine.hpp>
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/forward.hpp>

using namespace octavo;
using namespace octavo::backends;
using M = nvidia::scaled_machine;
using recipe::mx32;

namespace {

template <class Kernel>
void* code() {
  return reinterpret_cast<void*>(&gpu::run_blocks<Kernel>);
}

}  // namespace

extern void* kernels[];
void* kernels[] = {code<simt::forward_kernel<M, mx32, delta::matched, 64>>(),
                   code<simt::delta_sums_kernel<M, mx32, 64>>(), code<simt::dq_kernel<M, mx32, delta::matched, 64>>(),
                   code<simt::dkv_kernel<M, mx32, delta::matched, 64>>()};
