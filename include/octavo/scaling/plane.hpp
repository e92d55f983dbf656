// SPDX-License-Identifier: Apache-2.0
// One (document, head) plane of a quantised tensor: where its payload and scales stand. The layouts are those that
// tensor/arguments.hpp documents for basic_quantized.
#pragma once

#include <octavo/numeric/e8m0.hpp>
#include <octavo/scaling/recipe.hpp>
#include <octavo/tensor/arguments.hpp>
#include <octavo/tensor/documents.hpp>

OCTAVO_BEGIN_NAMESPACE

inline constexpr int mx_block = 32;     ///< elements under one scale of mx32 (OCP Microscaling v1.0)
inline constexpr int tile_block = 128;  ///< tokens under one scale of `tile`, and the run over which P and dS share one

/// A plane of s tokens x d channels. Byte pointers; strides in elements.
struct payload_plane {
  const std::uint8_t* rowwise = nullptr;
  std::int64_t rowwise_stride = 0;
  const std::uint8_t* columnwise = nullptr;  ///< the same payload unless the recipe has two images
  std::int64_t columnwise_stride = 0;
  const void* scales = nullptr;                     ///< e8m0 [s] (token), e8m0 [ceil(s/128)] (tile), float [1] (tensor)
  const std::uint8_t* rowwise_blocks = nullptr;     ///< e8m0 [s][d/32] (mx32)
  const std::uint8_t* columnwise_blocks = nullptr;  ///< e8m0 [ceil(s/32)][d] (mx32)
};

/// The scale that a whole token shares; 1 where scales run in blocks (they travel in the operand) or do not exist.
template <class Recipe>
OCTAVO_HD float token_scale(const payload_plane& x, std::int64_t token) {
  if constexpr (Recipe::scale_per == recipe::granularity::token)
    return static_cast<float>(e8m0{static_cast<const std::uint8_t*>(x.scales)[token]});
  else if constexpr (Recipe::scale_per == recipe::granularity::tile128)
    return static_cast<float>(e8m0{static_cast<const std::uint8_t*>(x.scales)[token / tile_block]});
  else if constexpr (Recipe::scale_per == recipe::granularity::tensor)
    return *static_cast<const float*>(x.scales);
  else
    return 1.0f;
}

/// Scales of a quantised tensor [b, heads, s, d], as a count and as the place of each (document, head)'s first.
template <class Recipe>
struct scale_layout {
  documents docs;
  std::int64_t heads = 0, d = 0;

  static constexpr std::size_t scale_bytes = Recipe::scale_per == recipe::granularity::tensor ? sizeof(float) : 1;

  /// Blocks of one head (of one batch, when not packed). The tail of a packed tensor has no scales: nothing reads it.
  OCTAVO_HD std::int64_t per_head(int block) const {
    return docs.packed ? docs.total / block + docs.count : ceil_div(docs.length, block);
  }

  OCTAVO_HD std::int64_t rowwise_count() const {
    switch (Recipe::scale_per) {
      case recipe::granularity::token:
        return docs.rows() * heads;
      case recipe::granularity::tile128:
        return (docs.packed ? 1 : docs.count) * heads * per_head(tile_block);
      case recipe::granularity::tensor:
        return docs.count * heads;
      case recipe::granularity::block32:
        return docs.rows() * heads * (d / mx_block);
      default:
        return 0;
    }
  }
  OCTAVO_HD std::int64_t columnwise_count() const {
    if (Recipe::scale_per != recipe::granularity::block32) return 0;
    return (docs.packed ? 1 : docs.count) * heads * per_head(mx_block) * d;
  }
  OCTAVO_HD std::int64_t rowwise_first(std::int64_t document, std::int64_t h) const {
    switch (Recipe::scale_per) {
      case recipe::granularity::token:
        return docs.statistic(document, h, heads, 0);
      case recipe::granularity::tile128:
        return block_first(document, h, tile_block);
      case recipe::granularity::tensor:
        return docs.packed ? h * docs.count + document : document * heads + h;
      case recipe::granularity::block32:
        return docs.statistic(document, h, heads, 0) * (d / mx_block);
      default:
        return 0;
    }
  }
  OCTAVO_HD std::int64_t columnwise_first(std::int64_t document, std::int64_t h) const {
    return block_first(document, h, mx_block) * d;
  }

 private:
  OCTAVO_HD std::int64_t block_first(std::int64_t document, std::int64_t h, int block) const {
    return docs.packed ? h * per_head(block) + docs.first_slot(document, block)
                       : (document * heads + h) * per_head(block);
  }
};

/// The plane of (document, h).
template <class Recipe>
OCTAVO_HD payload_plane plane_of(const const_quantized& x, const scale_layout<Recipe>& at, std::int64_t document,
                                 std::int64_t h) {
  constexpr std::size_t element_bytes = sizeof(typename Recipe::element);
  payload_plane plane;
  const auto bytes = [&](const const_tensor& t) {
    return static_cast<const std::uint8_t*>(t.data) +
           element_offset(t, at.docs, document, 0, h) * static_cast<std::int64_t>(element_bytes);
  };
  plane.rowwise = bytes(x.rowwise);
  plane.rowwise_stride = x.rowwise.stride_s;
  plane.columnwise = plane.rowwise;
  plane.columnwise_stride = plane.rowwise_stride;
  if constexpr (Recipe::scale_per == recipe::granularity::block32) {
    plane.columnwise = bytes(x.columnwise);
    plane.columnwise_stride = x.columnwise.stride_s;
    plane.rowwise_blocks = static_cast<const std::uint8_t*>(x.rowwise_scale) + at.rowwise_first(document, h);
    plane.columnwise_blocks = static_cast<const std::uint8_t*>(x.columnwise_scale) + at.columnwise_first(document, h);
  } else if constexpr (recipe::is_fp8<Recipe>) {
    plane.scales = static_cast<const std::uint8_t*>(x.rowwise_scale) +
                   at.rowwise_first(document, h) * static_cast<std::int64_t>(at.scale_bytes);
  }
  return plane;
}

OCTAVO_END_NAMESPACE
