// SPDX-License-Identifier: Apache-2.0
// The two forms of block-scaled products that the loops are made of, as one thread issues them, and the tensor memory of
// a block.
//
//     over channels   D[128, N] = A[128, d] B[N, d]^T           A and B: rows of two tiles in shared memory
//     over tokens     D[128, d] += A[128, n] (B[n, d])          A: P or dS in tensor memory; B: columns of a tile
//
// The tensor cores' sums keep 25 fraction bits, so that a product may run over any number of tokens.
#pragma once

#include <octavo/backends/cuda/blackwell/images.hpp>
#include <octavo/backends/cuda/common/ring.hpp>
#include <octavo/backends/cuda/ptx/tcgen05.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// Bytes of two chunks of a tile: 32 channels, which a product contracts at a time.
inline constexpr int channel_step_bytes = 2 * chunk_bytes * tile_tokens;
/// Bytes of 32 tokens of a chunk.
inline constexpr int token_step_bytes = ptx::mma_depth * chunk_bytes;
/// Columns that 32 elements of FP8 of a row take in tensor memory.
inline constexpr int block_columns = mx_block / 4;

/// 32 channels further on in a left operand's rows, in shared or in tensor memory.
OCTAVO_DEVICE ptx::shared_operand further(ptx::shared_operand rows, int steps) {
  return rows.advanced(steps * channel_step_bytes);
}
OCTAVO_DEVICE ptx::tensor_address further(ptx::tensor_address rows, int steps) {
  return rows.column(steps * block_columns);
}
/// A tile's rows in shared memory as an operand.
OCTAVO_DEVICE ptx::shared_operand operand_of(const std::uint8_t* rows) {
  return ptx::shared_operand::k_major(rows, tile_tokens);
}

/// N tokens from first_b on of a tile's rows against all rows of another: D = A B^T over D channels. A stands in shared or
/// in tensor memory; the scales stand in tensor memory, 4 columns a tile.
template <int D, int N, class Left>
OCTAVO_DEVICE void multiply_rows(ptx::tensor_address to, Left a, ptx::tensor_address a_scales, const std::uint8_t* b,
                                 ptx::tensor_address b_scales, int first_b) {
  constexpr ptx::mma_instruction how = ptx::mma_instruction::scaled<e4m3, e4m3>(N);
  const ptx::shared_operand right = operand_of(b + first_b * chunk_bytes);
  OCTAVO_UNROLL
  for (int k = 0; k < D / ptx::mma_depth; ++k)
    ptx::tcgen05_mma_scaled(to, further(a, k), further(right, k), how.scale_bytes(k, k), a_scales,
                            b_scales.column(first_b / 32), k > 0);
}

/// D (+)= A B over n tokens from first_b on of a tile's columns. A stands in tensor memory with its scales from byte 0 on.
template <int D, int n>
OCTAVO_DEVICE void multiply_columns(ptx::tensor_address to, ptx::tensor_address a, ptx::tensor_address a_scales,
                                    const std::uint8_t* b, ptx::tensor_address b_scales, int first_b, bool accumulate) {
  constexpr ptx::mma_instruction how = ptx::mma_instruction::scaled<e4m3, e4m3>(D, ptx::major::k, ptx::major::r);
  const ptx::shared_operand right =
      ptx::shared_operand::r_major(b + first_b * chunk_bytes, ptx::swizzle::none, tile_tokens);
  OCTAVO_UNROLL
  for (int k = 0; k < n / ptx::mma_depth; ++k)
    ptx::tcgen05_mma_scaled(to, a.column(k * block_columns), right.advanced(k * token_step_bytes),
                            how.scale_bytes(k, first_b / mx_block + k), a_scales, b_scales, accumulate || k > 0);
}

/// A tile's scales from shared to tensor memory.
OCTAVO_DEVICE void copy_scales(ptx::tensor_address to, const std::uint8_t* from) {
  ptx::tcgen05_copy_scales(to, ptx::shared_operand::scale_tile(from));
}

/// The last thing that the thread does which issues products: a block must not end before them, and before what tells of
/// their end has arrived.
OCTAVO_DEVICE void end_products(ptx::shared_barrier& finished) {
  ptx::tcgen05_commit(finished);
  finished.wait(0);
}

/// All of the multiprocessor's tensor memory for a block: take() before and give_back() behind all else, by all threads.
struct tensor_memory {
  ptx::tensor_address first;

  OCTAVO_DEVICE void take() {
    if (ptx::uniform(ptx::thread_index() / ptx::warp_threads) == 0) {
      ptx::tcgen05_alloc(&first, ptx::tensor_columns);
      ptx::tcgen05_relinquish();
    }
    ptx::tcgen05_fence_before();
    ptx::sync_block();
    ptx::tcgen05_fence_after();
  }
  OCTAVO_DEVICE void give_back() const {
    ptx::tcgen05_fence_before();
    ptx::sync_block();
    ptx::tcgen05_fence_after();
    if (ptx::uniform(ptx::thread_index() / ptx::warp_threads) == 0) ptx::tcgen05_dealloc(first, ptx::tensor_columns);
  }
};

/// ptx::block_index(), not to be looked at before here: what the compiler works out ahead of tensor_memory::take() it keeps
/// in local memory, across a call that traps if there is no tensor memory.
OCTAVO_DEVICE std::uint32_t block_number() {
  std::uint32_t block = narrow(ptx::block_index());
  ptx::keep_as_is(block);
  return block;
}

/// The roles of a block: the first warpgroup's warps, of which one lane each works, and two groups that own rows.
enum role_warp { copying_warp = 0, multiplying_warp = 1 };
inline constexpr int row_groups = 2;
inline constexpr int block_threads = (1 + row_groups) * ptx::group_threads;
inline constexpr int issuing_registers = 80, row_registers = 208;
static_assert((issuing_registers + row_groups * row_registers) * ptx::group_threads <= 65536);

/// A thread of a group that owns rows: row 32 w + lane of a tile stands in lane 32 w + lane of tensor memory.
struct row_place {
  int group;  ///< 0 or 1
  int warp;   ///< of the group
  int lane;
  int row;  ///< of the tile

  OCTAVO_DEVICE static row_place here() {
    const int thread = ptx::thread_index() - ptx::group_threads;
    const int warp = ptx::uniform(thread / ptx::warp_threads), lane = thread % ptx::warp_threads;
    return {warp / 4, warp % 4, lane, warp % 4 * ptx::warp_threads + lane};
  }
  /// The warp's lanes of tensor memory.
  OCTAVO_DEVICE ptx::tensor_address lanes_of(ptx::tensor_address x) const { return x.of_warp(warp); }
  /// The warp has done what the barrier counts (4 arrivals a group).
  OCTAVO_DEVICE void arrive(ptx::shared_barrier& barrier) const {
    ptx::tcgen05_fence_before();
    ptx::sync_warp();
    if (lane == 0) barrier.arrive();
  }
};
inline constexpr int group_arrivals = 4;

/// Waits for what the tensor cores or other threads did to tensor memory.
OCTAVO_DEVICE void wait_for(ptx::shared_barrier& barrier, int parity) {
  barrier.wait(parity);
  ptx::tcgen05_fence_after();
}

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
