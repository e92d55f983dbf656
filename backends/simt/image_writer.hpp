// SPDX-License-Identifier: Apache-2.0
// From the payload of a tile in shared memory, row by row, to wherever it is wanted: both images, the plain payload, the
// caller's tensor, the channels that are not finite.
#pragma once

#include <octavo/backends/simt/quantise_input.hpp>
#include <octavo/backends/simt/scale_bits.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// A tile's OCP codes.
template <class M, int D>
using tile_payload = std::uint32_t[tile_tokens][tile_share<M, D>::row_words];

/// All threads of a block of tile_share<M, D>::threads call these, behind a barrier.
template <class M, class E, int D, bool scaled>
struct image_writer {
  using share_type = tile_share<M, D>;
  using payload_type = tile_payload<M, D>;
  using at_lane = image_layout<M>;
  using A = typename M::template atom<e4m3, e4m3>;
  static constexpr int threads = share_type::threads;
  static constexpr int operand_block = operand_block_bytes<M, scaled>;

  /// Every thread gathers pieces of 16 bytes, in the order of memory.
  OCTAVO_DEVICE static void write_rows(std::uint8_t* image, const payload_type& payload) {
    constexpr int pieces = tile_tokens * D / 16, block_pieces = at_lane::block_bytes / 16, depths = D / at_lane::depth;
    OCTAVO_UNROLL_TIMES(4)
    for (int p = M::thread_index(); p < pieces; p += threads) {
      const int block = p / block_pieces, lane = p % M::lanes, piece = p % block_pieces / M::lanes;
      std::uint32_t words[4];
      OCTAVO_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int token = block / depths * at_lane::size + A::operand_row(lane, 4 * piece + j);
        const int channel = block % depths * at_lane::depth + A::operand_depth(lane, 4 * piece + j);
        words[j] = M::template operand_bytes<E>(payload[token][channel / 4]);
      }
      store_piece(image + block * operand_block + p % block_pieces * 16, words);
    }
  }
  /// Every thread gathers the pieces of four lanes, whose rows are neighbours: 4 x 4 bytes are transposed at a time.
  /// finite: no code is a NaN or an infinity.
  OCTAVO_DEVICE static void write_columns(std::uint8_t* image, const payload_type& payload, bool finite) {
    constexpr int quads = tile_tokens * D / 64, block_quads = at_lane::block_bytes / 64, channels = D / at_lane::size;
    constexpr int stride = at_lane::lane_of_next_row, lane_quads = M::lanes / 4;
    static_assert(stride > 0 && at_lane::size % 4 == 0);
    for (int p = M::thread_index(); p < quads; p += threads) {
      const int block = p / block_quads, piece = p % block_quads / lane_quads, quad = p % lane_quads;
      const int lane = quad / stride * (4 * stride) + quad % stride;
      std::uint32_t of_lane[4][4];  // by lane, then word
      OCTAVO_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int word = 4 * piece + j, channel = block % channels * at_lane::size + A::operand_row(lane, word);
        std::uint32_t of_token[4], of_channel[4];
        OCTAVO_UNROLL
        for (int byte = 0; byte < 4; ++byte) {
          const int token = block / channels * at_lane::depth + at_lane::token_of(lane, word, byte);
          of_token[byte] = payload[token][channel / 4];
        }
        transpose_bytes<M>(of_token, of_channel);
        OCTAVO_UNROLL
        for (int i = 0; i < 4; ++i)
          of_lane[i][j] = M::template operand_bytes<E>(finite ? of_channel[i] : finite_bytes<E>(of_channel[i]));
      }
      OCTAVO_UNROLL
      for (int i = 0; i < 4; ++i)
        store_piece(image + block * operand_block + (piece * M::lanes + lane + i * stride) * 16, of_lane[i]);
    }
  }

  /// The scales of a row image: scale(token, block of channels), an E8M0.
  template <class Scale>
  OCTAVO_DEVICE static void write_row_scales(std::uint8_t* image, Scale scale) {
    constexpr int depths = D / at_lane::depth, depth_blocks = at_lane::depth / mx_block;
    write_scales(image, [&](int block, int lane) {
      return scale(block / depths * at_lane::size + A::scale_row(lane),
                   block % depths * depth_blocks + A::scale_block(lane));
    });
  }
  /// Of a column image: scale(channel, block of tokens).
  template <class Scale>
  OCTAVO_DEVICE static void write_column_scales(std::uint8_t* image, Scale scale) {
    constexpr int channels = D / at_lane::size, depth_blocks = at_lane::depth / mx_block;
    write_scales(image, [&](int block, int lane) {
      return scale(block % channels * at_lane::size + A::scale_row(lane),
                   block / channels * depth_blocks + A::scale_block(lane));
    });
  }

  OCTAVO_DEVICE static void write_plain(std::uint8_t* to, const share_type& share, const payload_type& payload) {
    for (int i = 0; i < share.tokens; ++i)
      __builtin_memcpy(__builtin_assume_aligned(to + share.token(i) * D + share.channel(), 8),
                       &payload[share.token(i)][share.channel() / 4], 8);
  }
  /// Row by row, to a tensor of E.
  template <class Layout>
  OCTAVO_DEVICE static void write_kept(const tensor& kept, const Layout& at, const tile_place& here,
                                       const share_type& share, const payload_type& payload) {
    const tile_rows rows(kept, 1, at, here, share);
    if (share.channel() >= at.d) return;
    for (int i = 0; i < share.tokens; ++i) {
      const int token = share.token(i);
      if (token >= here.tokens) continue;
      char* to = rows.writable(token);
      const std::uint32_t* from = &payload[token][share.channel() / 4];
      if (rows.wide)
        __builtin_memcpy(__builtin_assume_aligned(to, 8), from, 8);
      else
        for (int c = 0; c < 8; ++c) to[c] = static_cast<char>(from[c / 4] >> c % 4 * 8);
    }
  }
  /// For marked tokens, which channels are not finite (tile_images::nonfinite_channels).
  OCTAVO_DEVICE static void write_channels(std::uint32_t* to, const std::uint32_t (&nonfinite)[4],
                                           const payload_type& payload) {
    for (int i = M::thread_index(); i < tile_tokens * (D / 32); i += threads) {
      const int token = i / (D / 32);
      if ((nonfinite[token / 32] >> token % 32 & 1) == 0) continue;
      std::uint32_t bits = 0;
      for (int w = 0; w < 8; ++w) {
        const std::uint32_t high = nonfinite_bytes<E>(payload[token][i % (D / 32) * 8 + w]);
        bits |= ((high >> 7 & 1) | (high >> 14 & 2) | (high >> 21 & 4) | (high >> 28 & 8)) << 4 * w;
      }
      to[i] = bits;
    }
  }

 private:
  /// scale(block, lane) behind every operand block, four lanes at a time.
  template <class Scale>
  OCTAVO_DEVICE static void write_scales(std::uint8_t* image, Scale scale) {
    constexpr int lane_quads = M::lanes / 4, quads = tile_tokens * D / at_lane::block_bytes * lane_quads;
    for (int p = M::thread_index(); p < quads; p += threads) {
      const int block = p / lane_quads, lane = p % lane_quads * 4;
      std::uint32_t word = 0;
      OCTAVO_UNROLL
      for (int i = 0; i < 4; ++i) word |= static_cast<std::uint32_t>(scale(block, lane + i)) << 8 * i;
      __builtin_memcpy(__builtin_assume_aligned(image + block * operand_block + at_lane::block_bytes + lane, 4), &word,
                       4);
    }
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
