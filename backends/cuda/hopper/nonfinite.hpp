// SPDX-License-Identifier: Apache-2.0
// What a NaN in V (forward) or dO (dV) does to a product with weights: it reaches its channel in the rows that give its
// token a weight, and nothing else. Column images hold it as a marked zero, so that other rows do not meet it; which
// results it reached is noted in shared memory, out of the loops' registers, and written at the end.
#pragma once

#include <octavo/backends/cuda/hopper/fragments.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// One bit per result of a block: 128 rows x D channels.
template <int D>
struct poisoned_results {
  std::uint32_t bits[tile_tokens][D / 32];
  std::uint32_t any[2];  ///< by group of readers: of its rows

  /// All threads of the block, before a barrier.
  OCTAVO_DEVICE void clear(int threads) {
    std::uint32_t* word = &bits[0][0];
    for (int i = ptx::thread_index(); i < tile_tokens * D / 32; i += threads) word[i] = 0;
    if (ptx::thread_index() == 0) any[0] = any[1] = 0;
  }
  /// A group's half, by all its threads, after all of them have read it; before any of them notes anew.
  OCTAVO_DEVICE void clear_group(int group) {
    ptx::sync_named(group, ptx::group_threads);
    std::uint32_t* word = &bits[tile_tokens / 2 * (group - 1)][0];
    for (int i = ptx::thread_index() % ptx::group_threads; i < tile_tokens / 2 * D / 32; i += ptx::group_threads)
      word[i] = 0;
    if (ptx::thread_index() % ptx::group_threads == 0) any[group - 1] = 0;
    ptx::sync_named(group, ptx::group_threads);
  }
  /// weights: of this thread's two rows, packed, over tokens [first, first + 32 steps) of a tile whose column image has
  /// `rows` rows; first_row: of the group within the tile. All lanes of a warp.
  template <int steps>
  OCTAVO_DEVICE void note(const std::uint32_t (&weights)[steps][4], const lane_place& place, int first_row,
                          const std::uint8_t* columns, int rows, int first, const std::uint32_t* nonfinite) {
    std::uint64_t reached = 0;  // bit i: element i gives a weight to such a token
    OCTAVO_UNROLL
    for (int i = 0; i < 16 * steps; ++i) {
      const int token = first + column(i, place.quad_lane);
      const bool weighted = (nonfinite[token / 32] >> token % 32 & 1) != 0 && (packed_byte(weights, i) & 0x7f) != 0;
      reached |= std::uint64_t{weighted} << i;
    }
    if (reached != 0) ptx::atomic_or(&any[place.group - 1], 1);
    OCTAVO_NO_UNROLL
    for (int i = 0; i < 16 * steps; ++i)
      if ((reached >> i & 1) != 0)
        note_token(first_row + place.row + 8 * row_half(i), first + column(i, place.quad_lane), columns, rows);
    ptx::sync_warp();
  }
  OCTAVO_DEVICE bool holds(int row, int channel) const { return (bits[row][channel / 32] >> channel % 32 & 1) != 0; }

 private:
  OCTAVO_DEVICE void note_token(int row, int token, const std::uint8_t* columns, int rows) {
    OCTAVO_NO_UNROLL
    for (int c = 0; c < D; ++c)
      if (columns[column_image_at(slot_of_token<token_order::registers>(token), c, rows)] == nonfinite_in_columns)
        ptx::atomic_or(&bits[row][c / 32], 1u << c % 32);
  }
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
