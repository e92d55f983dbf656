// SPDX-License-Identifier: Apache-2.0
// The Blackwell kernels, for the compiler's report. Nothing here runs.
#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/gpu/launch.hpp>

using namespace octavo;
using namespace octavo::backends;

namespace {

template <class Kernel>
void* code() {
  static_assert(Kernel::shared_bytes <= 227 * 1024, "a block has at most 227 KB of shared memory");
  return reinterpret_cast<void*>(&gpu::run_blocks<Kernel>);
}

using recipe::mx32;
template <int D>
void* kernels[] = {code<blackwell::quantise_kernel<mx32, e4m3, D>>(),
                   code<blackwell::forward_kernel<mx32, delta::matched, D>>(),
                   code<blackwell::delta_sums_kernel<mx32, D>>(),
                   code<blackwell::dq_kernel<mx32, delta::matched, D>>(),
                   code<blackwell::dq_kernel<mx32, delta::consistent, D>>(),
                   code<blackwell::dkv_kernel<mx32, delta::matched, D>>(),
                   code<blackwell::dkv_kernel<mx32, delta::consistent, D>>()};

}  // namespace

extern void** const of_every_shape[];
void** const of_every_shape[] = {kernels<64>, kernels<128>};
