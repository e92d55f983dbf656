// SPDX-License-Identifier: Apache-2.0
// How the threads of a quantise kernel share a tile of 128 tokens, and how they bring its bytes into the two images
// without shared memory.
//
// Warp w has tokens 16 w to 16 w + 15: one chunk of the column image. A thread has eight channels, 16 bytes of a 16-bit
// tensor, of four or eight tokens, taken so that the four tokens of a word of the column image are in one thread:
//
//     word v of the 16 slots   tokens 2 v, 2 v + 1, 2 v + 8, 2 v + 9, in both token orders
//
// What remains is to transpose 4 x 4 bytes within a thread, and words between two or four lanes.
#pragma once

#include <octavo/backends/cuda/common/row_image.hpp>
#include <octavo/backends/cuda/hopper/images.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/numeric/fp16.hpp>

#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// A thread's share of a tile of d = D channels.
template <int D>
struct tile_share {
  static constexpr int channels = 8;                            ///< per thread
  static constexpr int row_lanes = D / channels;                ///< lanes that have a token together
  static constexpr int groups = ptx::warp_threads / row_lanes;  ///< tokens that a warp has side by side
  static constexpr int words = 4 / groups;                      ///< per channel, of the four in a chunk
  static constexpr int tokens = 4 * words;                      ///< per thread
  static constexpr int warp_tokens = chunk_bytes;
  static constexpr int warps = tile_tokens / warp_tokens;

  int warp = ptx::thread_index() / ptx::warp_threads;
  int lane = ptx::thread_index() % ptx::warp_threads;
  int group = lane / row_lanes;
  int lane_of_row = lane % row_lanes;

  OCTAVO_DEVICE int channel() const { return channels * lane_of_row; }
  /// Tokens 4 a to 4 a + 3 of a thread are those of its a-th word; tokens 2 i and 2 i + 1 are neighbours.
  OCTAVO_DEVICE static constexpr int token_in_group_0(int i) { return 2 * groups * (i / 4) + i % 2 + i / 2 % 2 * 8; }
  OCTAVO_DEVICE int token_of_warp(int i) const { return token_in_group_0(i) + 2 * group; }
  OCTAVO_DEVICE int token(int i) const { return warp_tokens * warp + token_of_warp(i); }
};

/// The bytes of a thread's share: eight channels of each of its tokens.
template <int D>
using payload_share = std::uint32_t[tile_share<D>::tokens][2];

/// Transposes 4 x 4 bytes: rows a, b, c, d become columns.
OCTAVO_DEVICE void transpose_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d,
                                   std::uint32_t (&column)[4]) {
  const std::uint32_t ab_low = ptx::permute_bytes(a, b, 0x5140), ab_high = ptx::permute_bytes(a, b, 0x7362);
  const std::uint32_t cd_low = ptx::permute_bytes(c, d, 0x5140), cd_high = ptx::permute_bytes(c, d, 0x7362);
  column[0] = ptx::permute_bytes(ab_low, cd_low, 0x5410);
  column[1] = ptx::permute_bytes(ab_low, cd_low, 0x7632);
  column[2] = ptx::permute_bytes(ab_high, cd_high, 0x5410);
  column[3] = ptx::permute_bytes(ab_high, cd_high, 0x7632);
}

/// Writes a warp's tokens into a row image.
template <int D>
OCTAVO_DEVICE void store_rows(const tile_share<D>& share, const payload_share<D>& payload, std::uint8_t* image) {
  OCTAVO_UNROLL
  for (int i = 0; i < share.tokens; i += 2) {
    std::uint32_t x[2] = {payload[i][0], payload[i][1]}, y[2] = {payload[i + 1][0], payload[i + 1][1]};
    store_pair(x, y, share.token(i), share.channel(), share.lane, image);
  }
}

/// Writes a warp's tokens into a column image of `rows` rows. Lanes that have the same channels divide them, so that
/// each has 16 tokens of every second (or fourth) channel: every store fills 32 (d = 128) or 64 bytes in a row.
template <token_order order, int D>
OCTAVO_DEVICE void store_columns(const tile_share<D>& share, const payload_share<D>& payload, std::uint8_t* image,
                                 int rows) {
  constexpr int groups = tile_share<D>::groups, words = tile_share<D>::words, channels = tile_share<D>::channels;
  std::uint32_t column[words][channels];
  OCTAVO_UNROLL
  for (int c = 0; c < channels; c += 4)
    for (int a = 0; a < words; ++a) {
      const auto in_slot = [&](int slot) {
        const int token = token_of_slot<order>(slot);  // 0, 1, 8 or 9
        return payload[4 * a + token % 2 + token / 8 * 2][c / 4];
      };
      std::uint32_t quad[4];
      transpose_bytes(in_slot(0), in_slot(1), in_slot(2), in_slot(3), quad);
      OCTAVO_UNROLL
      for (int i = 0; i < 4; ++i) column[a][c + i] = quad[i];
    }
  // For every bit of a group's number. Then column[a][i + g] is word groups * a + g of channel i + share.group, for the
  // multiples i of the number of groups.
  OCTAVO_UNROLL
  for (int bit = 1; bit < groups; bit *= 2)
    for (int a = 0; a < words; ++a)
      for (int c = 0; c < channels; ++c)
        if ((c & bit) == 0)
          transpose_between_lanes(column[a][c], column[a][c + bit], bit * share.row_lanes, (share.group & bit) != 0);
  OCTAVO_UNROLL
  for (int i = 0; i < channels; i += groups) {
    const auto word = [&](int v) { return column[v / groups][i + v % groups]; };
    const int channel = share.channel() + i + share.group;
    store_words(image + column_image_at(chunk_bytes * share.warp, channel, rows), word(0), word(1), word(2), word(3));
  }
}

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
