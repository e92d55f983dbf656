// SPDX-License-Identifier: Apache-2.0
// What a NaN in V (forward) or dO (dV) does to a product with weights: it reaches its channel in the rows that give its
// token a weight, and nothing else. Column images hold it as a zero, so that other rows do not meet it; which results it
// reached is noted in shared memory, out of the loops' registers, and written at the end.
#pragma once

#include <octavo/backends/simt/packed_rows.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// One bit per result of a block: 128 rows x D channels.
template <class M, int D>
struct poisoned_results {
  std::uint32_t bits[tile_tokens][D / 32];
  std::uint32_t any[4];

  /// All threads of the block, before a barrier.
  OCTAVO_DEVICE void clear(int threads) {
    std::uint32_t* word = &bits[0][0];
    for (int i = M::thread_index(); i < tile_tokens * D / 32; i += threads) word[i] = 0;
    if (M::thread_index() == 0) any[0] = 0;
  }
  /// weights: of the lane's rows, packed, over tokens [first, first + N) of a tile; nonfinite and channels: the tile's, as
  /// in tile_images.
  template <int row_tiles, int N, bool scaled>
  OCTAVO_DEVICE void note(const packed_rows<M, row_tiles, N, scaled>& weights, const lane_place<M, row_tiles>& place,
                          int first, const std::uint32_t* nonfinite, const std::uint32_t* channels) {
    using shape = sums_of<M, row_tiles, N>;
    using packed = packed_rows<M, row_tiles, N, scaled>;
    packed::each_word([&](int m, int k, int w) {
      OCTAVO_UNROLL
      for (int byte = 0; byte < 4; ++byte) {
        const int element = packed::element(m, k, w, byte), token = first + place.column + shape::column(element);
        if ((nonfinite[token / 32] >> token % 32 & 1) == 0) continue;
        if (!M::is_weight(weights.of[m][k].words[w] >> 8 * byte & 0xff)) continue;
        M::atomic_or(&any[0], 1);
        note_token(place.row(shape::row(element)), channels + token * (D / 32));
      }
    });
  }
  OCTAVO_DEVICE bool holds(int row, int channel) const { return (bits[row][channel / 32] >> channel % 32 & 1) != 0; }

 private:
  OCTAVO_DEVICE void note_token(int row, const std::uint32_t* channels) {
    OCTAVO_NO_UNROLL
    for (int c = 0; c < D / 32; ++c)
      if (channels[c] != 0) M::atomic_or(&bits[row][c], channels[c]);
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
