// SPDX-License-Identifier: Apache-2.0
// Copies of 16 bytes that every thread starts for itself (cp.async), for machines without the bulk engine as well.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/async.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// Begins to copy 16 bytes from global to shared memory; both ends 16-byte aligned.
OCTAVO_DEVICE void copy_piece(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}
/// Closes the group of copies that this thread has begun.
OCTAVO_DEVICE void commit_pieces() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Until at most the `pending` youngest groups of this thread are under way.
template <int pending>
OCTAVO_DEVICE void wait_pieces() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
