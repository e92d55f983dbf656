// SPDX-License-Identifier: Apache-2.0
// Bulk copies from global to shared memory and the barriers in shared memory that count their bytes.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/copy.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// A barrier in shared memory (mbarrier). Its phase ends when all expected arrivals came and all expected bytes were
/// copied; phases alternate between parity 0 (the first) and 1.
struct alignas(8) shared_barrier {
  std::uint64_t word;

  /// One thread, before fence_barriers() and a barrier of the block.
  OCTAVO_DEVICE void init(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
  }
  OCTAVO_DEVICE void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  /// Arrives, and makes the phase wait for `bytes` more of copies.
  OCTAVO_DEVICE void arrive_expecting(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  /// Waits for the end of the phase of this parity.
  OCTAVO_DEVICE void wait(int parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(this)),
        "r"(parity)
        : "memory");
  }
};

/// Makes initialised barriers visible to the copy engine.
OCTAVO_DEVICE void fence_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// Makes this thread's writes to shared memory visible to the copy engine and the tensor cores; before the barrier
/// behind which those read.
OCTAVO_DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Copies `bytes` (a multiple of 16; both ends 16-byte aligned) and counts them at `arrived`.
OCTAVO_DEVICE void bulk_load(void* to, const void* from, int bytes, shared_barrier& arrived) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(from), "r"(bytes), "r"(shared_address(&arrived))
               : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
