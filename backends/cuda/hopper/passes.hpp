// SPDX-License-Identifier: Apache-2.0
// The Hopper schedules as the passes of ../common take them.
#pragma once

#include <octavo/backends/cuda/hopper/delta_sums.hpp>
#include <octavo/backends/cuda/hopper/dkv.hpp>
#include <octavo/backends/cuda/hopper/dq.hpp>
#include <octavo/backends/cuda/hopper/forward.hpp>
#include <octavo/backends/cuda/hopper/quantise.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// Recipes whose scales leave a product over d, and one over 128 tokens, a single factor: those that tensor cores
/// without block scales compute natively.
template <class Recipe>
inline constexpr bool has_schedule =
    (Recipe::scale_per == recipe::granularity::tile128 || Recipe::scale_per == recipe::granularity::token) &&
    std::is_same_v<typename Recipe::element, e4m3> && std::is_same_v<typename Recipe::gradient_element, e4m3>;

/// One tensor's way from the caller's memory to its images.
template <class Recipe, int D>
struct image_input {
  using kernel = quantise_kernel<Recipe, e4m3, D, token_order::registers>;
  kernel work;

  void carve(detail::carver& memory, const wanted_images& wanted) {
    const std::int64_t tiles = work.blocks();
    if (wanted.rows) work.images.rows = memory.take<std::uint8_t>(tiles * tile_images::row_bytes(D));
    if (wanted.columns)
      work.images.columns = memory.take<std::uint8_t>(tiles * tile_images::column_bytes(D, wanted.extra_rows));
    work.extra = wanted.extra_rows;
    work.images.nonfinite = memory.take<std::uint32_t>(tiles * 4);
    work.scale = memory.take<float>(tiles * scales_per_tile<Recipe>);
    if (folds_token_scales<Recipe> && wanted.fold) work.fold = memory.take<float>(tiles * tile_tokens);
  }
  image_operand operand() const { return {work.images, work.at.docs.slots(tile_tokens), work.scale, work.fold}; }
};

struct schedules {
  static constexpr bool draws_tiles = true;
  template <class Recipe>
  static constexpr bool computes = has_schedule<Recipe>;
  template <class Recipe, int D>
  using input = image_input<Recipe, D>;
  template <class Recipe, class Delta, int D>
  using forward = forward_kernel<Recipe, delta::of_forward<Delta>, D>;
  template <class Recipe, int D>
  using delta_sums = delta_sums_kernel<Recipe, D>;
  template <class Recipe, class Delta, int D>
  using dq = dq_kernel<Recipe, Delta, D>;
  template <class Recipe, class Delta, int D>
  using dkv = dkv_kernel<Recipe, Delta, D>;
};
using passes = block_passes<schedules>;

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
