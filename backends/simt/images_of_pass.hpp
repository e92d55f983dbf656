// SPDX-License-Identifier: Apache-2.0
// A tensor of a pass on its way from the caller's memory to the lanes' images: where they lie in the workspace, and the
// kernel that makes them.
#pragma once

#include <octavo/backends/simt/image_qkv.hpp>
#include <octavo/backends/simt/quantise.hpp>
#include <octavo/backends/simt/quantise_blocks.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, class E, int D>
struct image_input {
  static constexpr bool scaled = scales_in_atom<Recipe>;
  using kernel = std::conditional_t<scaled, quantise_blocks_kernel<M, Recipe, E, D>, quantise_kernel<M, Recipe, E, D>>;
  kernel work;

  void carve(detail::carver& memory, const wanted_images& wanted) {
    const std::int64_t tiles = work.blocks();
    const auto take = [&](int tile_bytes) { return memory.take<std::uint8_t>(tiles * tile_bytes); };
    if (wanted.rows) work.images.rows = take(image_bytes<M, scaled>(tile_tokens, D));
    if (wanted.columns) work.images.columns = take(image_bytes<M, scaled>(tile_tokens, D));
    if (wanted.plain) work.images.plain = take(plain_bytes<scaled>(D));
    if (wanted.columns) work.images.nonfinite_channels = memory.take<std::uint32_t>(tiles * tile_tokens * (D / 32));
    work.images.nonfinite = memory.take<std::uint32_t>(tiles * 4);
    if constexpr (!scaled) {
      work.scale = memory.take<float>(tiles * scales_per_tile<Recipe>);
      if (folds_token_scales<Recipe> && wanted.fold) work.fold = memory.take<float>(tiles * tile_tokens);
    }
  }
  image_operand operand() const {
    image_operand x{work.images, work.at.docs.slots(tile_tokens), nullptr, nullptr};
    if constexpr (!scaled) x.scale = work.scale, x.fold = work.fold;
    return x;
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
