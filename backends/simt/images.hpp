// SPDX-License-Identifier: Apache-2.0
// How the lane-level schedules keep a quantised tensor: as images of its tiles of 128 tokens, made of the atom's operand
// blocks (atom.hpp), byte for byte what shared memory holds and in the order in which lanes read it.
//
//     rows      contracts d        blocks [token / size][channel / depth] of size tokens x depth channels
//     columns   contracts tokens   blocks [slot / depth][channel / size] of size channels x depth token slots
//
// In both, what belongs to a run of tokens is contiguous, so that a step's operands are one copy. In a column image tokens
// stand in the slots where accumulators rounded in place meet them (layout::token_of). Tokens beyond the document's last
// and channels beyond the tensor's are zero.
//
// Where the atom takes the scales (mx32), every operand block ends with a byte per lane, the E8M0 that the lane gives for
// the block (scale_row and scale_block of the atom): scales come along with what they belong to. Else the loops multiply
// by them, and they are kept apart, as floats.
#pragma once

#include <octavo/backends/simt/machine.hpp>
#include <octavo/scaling/plane.hpp>
#include <octavo/tensor/documents.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// The layout of a machine's images: one for all element types.
template <class M>
using image_layout = layout<typename M::template atom<e4m3, e4m3>, M::lanes>;

/// Whether the atom takes a recipe's scales along with the operands. Such code is called `scaled`.
template <class Recipe>
inline constexpr bool scales_in_atom = Recipe::scale_per == recipe::granularity::block32;

/// Bytes of an operand block, its scales included.
template <class M, bool scaled>
inline constexpr int operand_block_bytes = image_layout<M>::block_bytes + (scaled ? M::lanes : 0);
/// Bytes of either image per token, for 64 channels or a multiple.
template <class M, bool scaled>
OCTAVO_HD constexpr int token_bytes(int d) {
  return scaled ? d / 64 * (64 * operand_block_bytes<M, true> / image_layout<M>::block_bytes) : d;
}
/// Bytes of either image of `tokens` tokens: a tile, or whole operand blocks of it.
template <class M, bool scaled>
OCTAVO_HD constexpr int image_bytes(int tokens, int d) {
  return tokens * token_bytes<M, scaled>(d);
}
/// Bytes of the plain payload of a tile. Where scales run along d, they stand behind it: [128][d / 32].
template <bool scaled>
OCTAVO_HD constexpr int plain_bytes(int d) {
  return tile_tokens * (scaled ? d + d / mx_block : d);
}

/// The images of one tensor [b, s, heads, d], every tile of every head; null where a schedule needs none. Tiles of a
/// head stand in the order of documents::slots, heads one after another.
///
/// A NaN or an infinity is NaN in a row image. In a column image, where it would meet the zero weights of other rows,
/// it is 0, and the bits of nonfinite_channels name it.
struct tile_images {
  std::uint8_t* rows = nullptr;
  std::uint8_t* columns = nullptr;
  /// Bit t % 32 of word t / 32 of a tile: token t holds a NaN or an infinity, or may be so large that dP overflows.
  /// [heads][slots][4]
  std::uint32_t* nonfinite = nullptr;
  /// Bit c % 32 of word c / 32: which channels do. Written for tokens of which the bit above is set.
  /// [heads][slots][128][d / 32]
  std::uint32_t* nonfinite_channels = nullptr;
  /// The payload's own bytes, token after token, where a schedule reads them. [heads][slots][plain_bytes]
  std::uint8_t* plain = nullptr;
};

/// Not 0 where a tile holds a NaN or an infinity.
OCTAVO_HD inline std::uint32_t any_bit(const std::uint32_t* nonfinite) {
  return nonfinite[0] | nonfinite[1] | nonfinite[2] | nonfinite[3];
}

/// Floats of a tile's scales: one per token, or the tile's own, four times, since no copy is of less than 16 bytes.
template <class Recipe>
inline constexpr int scales_per_tile = Recipe::scale_per == recipe::granularity::token ? tile_tokens : 4;
/// Floats that a step of `step` tokens needs of them, and where in the tile's they begin.
template <class Recipe>
inline constexpr bool scales_by_token = Recipe::scale_per == recipe::granularity::token;
/// What a kernel keeps and copies of a step's scales: floats of an array, and bytes of a copy, 0 where the operands bring
/// them.
template <class Recipe, int step>
inline constexpr int step_factors = scales_by_token<Recipe> ? step : 4;
template <class Recipe, int step>
inline constexpr int step_factor_bytes = scales_in_atom<Recipe> ? 0 : 4 * step_factors<Recipe, step>;
/// The scale of a step's tokens; 1 where each token has its own, or the atom takes them.
template <class Recipe>
OCTAVO_HD float tile_scale(const float* of_step) {
  return Recipe::scale_per == recipe::granularity::tile128 ? of_step[0] : 1.0f;
}

/// What the loops read of one tensor.
struct image_operand {
  tile_images images;
  std::int64_t slots = 0;        ///< tiles of a head
  const float* scale = nullptr;  ///< [heads][slots][scales_per_tile]; null where the atom takes them
  const float* fold = nullptr;   ///< token, V: log2 of the scale as P takes it in, [heads][slots][128]

  OCTAVO_HD std::int64_t tile(std::int64_t h, std::int64_t slot) const { return h * slots + slot; }
  /// What products with a row of a tile still have to be multiplied by.
  template <class Recipe>
  OCTAVO_HD float scale_of(std::int64_t tile, int row) const {
    if constexpr (scales_in_atom<Recipe>)
      return 1;
    else
      return scale[tile * scales_per_tile<Recipe> + (scales_by_token<Recipe> ? row : 0)];
  }
};

/// A run of `step` tokens, number u of a document whose first tile is `first_tile`: where its parts begin. Tiles of a
/// document follow each other in images and factors, so that there is little to compute.
template <class M, class Recipe, int step>
struct step_of_tokens {
  std::int64_t token;  ///< counted over all tiles
  std::int64_t tile;

  OCTAVO_HD step_of_tokens(std::int64_t first_tile, int u)
      : token(first_tile * tile_tokens + static_cast<std::int64_t>(u) * step),
        tile(first_tile + u / (tile_tokens / step)) {}
  /// Of an image of d channels.
  OCTAVO_HD const std::uint8_t* in_image(const std::uint8_t* image, int d) const {
    return image + token * token_bytes<M, scales_in_atom<Recipe>>(d);
  }
  /// Of the scales, or of what else is kept like them.
  OCTAVO_HD const float* in_factors(const float* factors) const {
    if constexpr (scales_in_atom<Recipe>) return factors;  // none
    return scales_by_token<Recipe> ? factors + token : factors + tile * scales_per_tile<Recipe>;
  }
  OCTAVO_HD const std::uint32_t* in_marks(const std::uint32_t* nonfinite) const { return nonfinite + tile * 4; }
  /// The first token within its tile.
  OCTAVO_HD static int in_tile(int u) { return u % (tile_tokens / step) * step; }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
