// SPDX-License-Identifier: Apache-2.0
// How the Hopper schedules keep a quantised tensor: as images of its tiles of 128 tokens, byte for byte what the
// tensor cores read from shared memory, so that one bulk copy brings a whole tile and nothing is rearranged in the
// loops. FP8 products take both operands K-major and transpose nothing, so a tensor that is contracted in both
// directions has two images of every tile.
//
//     rows      contracts d        chunk k holds channels [16 k, 16 k + 16) of all 128 tokens, token after token
//     columns   contracts tokens   chunk k holds token slots [16 k, 16 k + 16) of all channels, channel after channel
//
// In a column image tokens stand in the order in which registers meet them as the other operand (token_of_slot). Tokens
// beyond the document's last are zero.
#pragma once

#include <octavo/backends/cuda/common/quantise_scale.hpp>
#include <octavo/backends/cuda/common/row_image.hpp>
#include <octavo/backends/cuda/ptx/wgmma.hpp>
#include <octavo/scaling/recipe.hpp>
#include <octavo/tensor/documents.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {
using namespace cuda_common;  // what the schedules of all architectures share

/// In which order a column image holds its tokens.
enum class token_order {
  /// For P and dS from registers. A product leaves lane q of a quad the columns 8 n + 2 q + e and takes as bytes of an
  /// operand 4 q + ... : slot 16 h + 4 q + 2 n + e holds token 16 h + 8 n + 2 q + e.
  registers,
  /// For dS through shared memory, where rows r and r + 8 of a product are stored as one 16-bit element: slot
  /// 16 h + 2 r + e holds token 16 h + r + 8 e.
  paired_rows,
};

/// The token of a tile whose number stands in slot `slot` of a column image.
template <token_order order>
OCTAVO_HD constexpr int token_of_slot(int slot) {
  const int high = slot & ~15, low = slot & 15;
  if constexpr (order == token_order::registers)
    return high + (low >> 1 & 1) * 8 + (low >> 2) * 2 + (low & 1);
  else
    return high + (low >> 1) + (low & 1) * 8;
}

/// The inverse.
template <token_order order>
OCTAVO_HD constexpr int slot_of_token(int token) {
  const int high = token & ~15, low = token & 15;
  if constexpr (order == token_order::registers)
    return high + (low >> 1 & 3) * 4 + (low >> 3) * 2 + (low & 1);
  else
    return high + (low & 7) * 2 + (low >> 3);
}

/// Where slot `slot` of channel `channel` stands in a column image of `rows` rows (d, or d and the ones).
OCTAVO_HD constexpr int column_image_at(int slot, int channel, int rows) {
  return (slot / chunk_bytes * rows + channel) * chunk_bytes + slot % chunk_bytes;
}

/// Rows of the number 1 below the channels of V's column image: the product with P then carries the row sums of P,
/// which l is made of. Eight is the least that the instruction's N grows by.
inline constexpr int ones_rows = 8;

/// The images of one tensor [b, s, heads, d], every tile of every head; null where a schedule needs none. Tiles of a
/// head stand in the order of documents::slots, heads one after another.
///
/// A NaN or an infinity is NaN in a row image. In a column image, where it would meet the zero weights of other rows,
/// it is -0, which multiplies as a zero does and which no finite element is written as.
struct tile_images {
  std::uint8_t* rows = nullptr;
  std::uint8_t* columns = nullptr;
  /// Bit t % 32 of word t / 32 of a tile: token t holds a NaN or an infinity, or may be so large that dP overflows.
  /// [heads][slots][4]
  std::uint32_t* nonfinite = nullptr;

  OCTAVO_HD static constexpr int row_bytes(int d) { return tile_tokens * d; }
  OCTAVO_HD static constexpr int column_bytes(int d, int extra_rows) { return tile_tokens * (d + extra_rows); }
};
/// Floats of a tile's scales: one per token, or the tile's own, four times, since no copy is of less than 16 bytes.
template <class Recipe>
inline constexpr int scales_per_tile = Recipe::scale_per == recipe::granularity::token ? tile_tokens : 4;

/// What the loops read of one tensor.
struct image_operand {
  tile_images images;
  std::int64_t slots = 0;        ///< tiles of a head
  const float* scale = nullptr;  ///< [heads][slots][scales_per_tile]
  const float* fold = nullptr;   ///< token, V: log2 of the scale as P takes it in, [heads][slots][128]

  OCTAVO_HD std::int64_t tile(std::int64_t h, std::int64_t slot) const { return h * slots + slot; }
  /// N channels from `channel` on of a token of a tile, as dP is made of them.
  template <class Recipe, int D, int N>
  OCTAVO_DEVICE void decode(std::int64_t tile, int token, int channel, float (&x)[N]) const {
    const bool per_token = Recipe::scale_per == recipe::granularity::token;
    const float factor = scale[tile * scales_per_tile<Recipe> + (per_token ? token : 0)];
    const std::uint8_t* image = images.rows + tile * tile_images::row_bytes(D);
    for (int c = 0; c < N; ++c) x[c] = e4m3::decode(image[row_image_at(token, channel + c)]) * factor;
  }
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
