// SPDX-License-Identifier: Apache-2.0
// How the Blackwell schedules keep a tensor that is quantised to mx32: tiles of 128 tokens, each with two payloads, whose
// scales run along d (rows: S and dP contract channels) and along tokens (columns: the other products contract those).
//
// Nothing is transposed. Both payloads stand as in ../common/row_image.hpp, 16 channels of all tokens together, token after
// token: that is a K-major matrix without swizzle for products that contract channels, and an R-major one for products
// that contract tokens, which the tensor cores transpose. So one bulk copy brings a tile, and the column payload differs
// from the row payload in its bytes only.
//
// The scales of a tile are a tile of the 128x4 layout (scaling/swizzle.hpp), which tcgen05.cp takes to tensor memory: of
// rows, token t and block b of 32 channels; of columns, channel c and block b of 32 tokens. What d 64 leaves over is 0.
#pragma once

#include <octavo/backends/cuda/common/quantise_scale.hpp>
#include <octavo/backends/cuda/common/row_image.hpp>
#include <octavo/backends/cuda/common/scores.hpp>
#include <octavo/scaling/plane.hpp>
#include <octavo/scaling/swizzle.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {
using namespace cuda_common;  // what the schedules of all architectures share

inline constexpr int tile_blocks = tile_tokens / mx_block;                ///< of 32 tokens in a tile
inline constexpr int scale_bytes = static_cast<int>(swizzle_tile_bytes);  ///< of one payload of a tile

/// Where the scale of row r (a token, or a channel) and block b stands in a tile's scales.
OCTAVO_HD constexpr int scale_at(int r, int b) { return static_cast<int>(swizzled_scale_offset(r, b, 4)); }

/// The images of one tensor [b, s, heads, d], every tile of every head; null where a schedule needs none. Tiles of a
/// head stand in the order of documents::slots, heads one after another. Absent tokens are zero.
///
/// A NaN or an infinity is NaN among the rows. Among the columns, where it would meet the zero weights of other rows, it
/// is -0, which multiplies as a zero does, and which no finite element of the same 32 tokens is written as.
struct tile_images {
  std::uint8_t* rows = nullptr;
  std::uint8_t* row_scales = nullptr;
  std::uint8_t* columns = nullptr;
  std::uint8_t* column_scales = nullptr;
  /// Bit t % 32 of word t / 32 of a tile: token t holds a NaN or an infinity, or may be so large that dP overflows.
  /// [heads][slots][4]
  std::uint32_t* nonfinite = nullptr;

  OCTAVO_HD static constexpr int payload_bytes(int d) { return tile_tokens * d; }
};

/// What the loops read of one tensor.
struct image_operand {
  tile_images images;
  std::int64_t slots = 0;  ///< tiles of a head

  /// Where a tile's images stand among those of all heads. As every tile has a block, the number fits in an int.
  OCTAVO_HD int tile(std::int64_t h, std::int64_t slot) const { return static_cast<int>(h * slots + slot); }
  OCTAVO_HD const std::uint8_t* rows(int tile, int d) const { return of_tile(images.rows, tile, tile_tokens * d); }
  OCTAVO_HD const std::uint8_t* columns(int tile, int d) const {
    return of_tile(images.columns, tile, tile_tokens * d);
  }
  OCTAVO_HD const std::uint8_t* row_scales(int tile) const { return of_tile(images.row_scales, tile, scale_bytes); }
  OCTAVO_HD const std::uint8_t* column_scales(int tile) const {
    return of_tile(images.column_scales, tile, scale_bytes);
  }
  OCTAVO_HD const std::uint32_t* nonfinite(int tile) const {
    return images.nonfinite + std::int64_t{tile} * tile_blocks;
  }
  /// N channels from `channel` on of a token of a tile, as dP is made of them; within one block of 32.
  template <class Recipe, int D, int N>
  OCTAVO_DEVICE void decode(int tile, int token, int channel, float (&x)[N]) const {
    static_assert(mx_block % N == 0);
    const float factor = static_cast<float>(e8m0{row_scales(tile)[scale_at(token, channel / mx_block)]});
    const std::uint8_t* image = rows(tile, D);
    for (int c = 0; c < N; ++c) x[c] = e4m3::decode(image[row_image_at(token, channel + c)]) * factor;
  }

 private:
  OCTAVO_HD static const std::uint8_t* of_tile(const std::uint8_t* first, int tile, int bytes) {
    return first + std::int64_t{tile} * bytes;
  }
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
