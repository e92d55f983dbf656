// SPDX-License-Identifier: Apache-2.0
// The Blackwell schedules as the passes of ../common take them.
#pragma once

#include <octavo/backends/cuda/blackwell/delta_sums.hpp>
#include <octavo/backends/cuda/blackwell/dkv.hpp>
#include <octavo/backends/cuda/blackwell/dq.hpp>
#include <octavo/backends/cuda/blackwell/forward.hpp>
#include <octavo/backends/cuda/blackwell/quantise.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// Block-scaled recipes of E4M3: what the tensor cores compute natively.
template <class Recipe>
inline constexpr bool has_schedule =
    Recipe::scale_per == recipe::granularity::block32 && std::is_same_v<typename Recipe::element, e4m3> &&
    std::is_same_v<typename Recipe::gradient_element, e4m3>;

/// One tensor's way from the caller's memory to its images.
template <class Recipe, int D>
struct image_input {
  quantise_kernel<Recipe, e4m3, D> work;

  void carve(detail::carver& memory, const wanted_images& wanted) {
    const std::int64_t tiles = work.blocks();
    const auto carve_image = [&](std::uint8_t*& payload, std::uint8_t*& scales) {
      payload = memory.take<std::uint8_t>(tiles * tile_images::payload_bytes(D));
      scales = memory.take<std::uint8_t>(tiles * scale_bytes);
    };
    if (wanted.rows) carve_image(work.images.rows, work.images.row_scales);
    if (wanted.columns) carve_image(work.images.columns, work.images.column_scales);
    work.images.nonfinite = memory.take<std::uint32_t>(tiles * tile_blocks);
  }
  image_operand operand() const { return {work.images, work.at.docs.slots(tile_tokens)}; }
};

struct schedules {
  static constexpr bool draws_tiles = false;
  template <class Recipe>
  static constexpr bool computes = has_schedule<Recipe>;
  template <class Recipe, int D>
  using input = image_input<Recipe, D>;
  template <class Recipe, class Delta, int D>
  using forward = forward_kernel<Recipe, delta::of_forward<Delta>, D, !Delta::reuses_forward_p>;
  template <class Recipe, int D>
  using delta_sums = delta_sums_kernel<Recipe, D, true>;
  template <class Recipe, class Delta, int D>
  using dq = dq_kernel<Recipe, Delta, D>;
  template <class Recipe, class Delta, int D>
  using dkv = dkv_kernel<Recipe, Delta, D>;
};
using passes = block_passes<schedules>;

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
