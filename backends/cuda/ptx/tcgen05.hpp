// SPDX-License-Identifier: Apache-2.0
// Products of the fifth-generation tensor cores, D[128, N] (+)= A[128, 32] B[N, 32]^T of FP8 with FP32 sums, N a
// multiple of 16 up to 256, issued by one thread, and what tells of their end. D: row r, column c in lane r, column c
// behind the address of D.
//
// A stands in shared memory, or in tensor memory: row r in lane r, 4 consecutive elements of K per column, 8 columns.
//
// Scales of mxf8f6f4 (E8M0, one per row and 32 elements of K) stand in tensor memory: that of row r in lane r % 32,
// column r / 32 behind the address, in the byte that the instruction descriptor names; the same again 32, 64 and 96
// lanes on. So 128 rows x 4 blocks of K take 4 columns: one tile of the 128x4 layout, which tcgen05_copy_scales spreads
// so. (B of N > 128 takes 8 columns: two tiles.)
//
// Products and copies that one thread issues run in the order of issue as far as a product reads what a copy wrote or
// adds to what a product wrote (same N). Everything else waits for a commit. To others it is known by the phase of the
// barrier given to tcgen05_commit, then tcgen05_fence_after() before they touch tensor memory.
#pragma once

#include <octavo/backends/cuda/ptx/copy.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/backends/cuda/ptx/tensor_memory.hpp>
#include <octavo/config.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/tcgen05.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// Whether the caller is the one lane of its warp that issues for it. All lanes of the warp call it.
OCTAVO_DEVICE bool elect_one() {
  std::uint32_t elected;
  asm volatile(
      "{\n.reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.b32 %0, 1, 0, p;\n}"
      : "=r"(elected));
  return elected != 0;
}

// D (+)= A B^T without scales (kind::f8f6f4); accumulate false: D = A B^T. The descriptor is mma_instruction::plain's.
OCTAVO_DEVICE void tcgen05_mma(tensor_address d, shared_operand a, shared_operand b, mma_instruction how,
                               bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;\n}" ::"r"(d.bits),
      "l"(a.bits), "l"(b.bits), "r"(how.bits), "r"(static_cast<int>(accumulate))
      : "memory");
}
OCTAVO_DEVICE void tcgen05_mma(tensor_address d, tensor_address a, shared_operand b, mma_instruction how,
                               bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %4, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], [%1], %2, %3, p;\n}" ::"r"(d.bits),
      "r"(a.bits), "l"(b.bits), "r"(how.bits), "r"(static_cast<int>(accumulate))
      : "memory");
}

// D (+)= (A times its scales) (B times its scales)^T (kind::mxf8f6f4, blocks of 32). The descriptor is
// mma_instruction::scaled's, with scale_bytes.
OCTAVO_DEVICE void tcgen05_mma_scaled(tensor_address d, shared_operand a, shared_operand b, mma_instruction how,
                                      tensor_address a_scales, tensor_address b_scales, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%0], %1, %2, %3, [%4], [%5], p;\n}" ::"r"(d.bits),
      "l"(a.bits), "l"(b.bits), "r"(how.bits), "r"(a_scales.bits), "r"(b_scales.bits), "r"(static_cast<int>(accumulate))
      : "memory");
}
OCTAVO_DEVICE void tcgen05_mma_scaled(tensor_address d, tensor_address a, shared_operand b, mma_instruction how,
                                      tensor_address a_scales, tensor_address b_scales, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\n"
      "setp.ne.b32 p, %6, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.block32 [%0], [%1], %2, %3, [%4], [%5], p;\n}" ::"r"(d.bits),
      "r"(a.bits), "l"(b.bits), "r"(how.bits), "r"(a_scales.bits), "r"(b_scales.bits), "r"(static_cast<int>(accumulate))
      : "memory");
}

/// A tile of scales (shared_operand::scale_tile) to 4 columns of tensor memory, in each of the four groups of 32 lanes.
OCTAVO_DEVICE void tcgen05_copy_scales(tensor_address to, shared_operand tile) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to.bits), "l"(tile.bits) : "memory");
}

/// Arrives once at the barrier when all products and copies that this thread has issued have ended.
OCTAVO_DEVICE void tcgen05_commit(shared_barrier& barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&barrier))
      : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
