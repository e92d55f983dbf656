// SPDX-License-Identifier: Apache-2.0
// NVIDIA's machine for mx32: GPUs of compute capability 12.0 (sm_120a and its family), whose mma.sync takes block scales.
// No engine is compiled for it yet; README.md of backends/simt says what it has been tried on.
#pragma once

#include <octavo/backends/cuda/simt/scaled_atom.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::nvidia {

struct scaled_machine : machine {
  static constexpr int shared_bytes = 99 * 1024;

  /// E4M3 alone: there is no scaled product of E5M2 here.
  template <class Recipe>
  static constexpr bool computes =
      Recipe::scale_per == recipe::granularity::block32 && std::is_same_v<typename Recipe::gradient_element, e4m3>;

  template <class L, class R>
  using atom = std::conditional_t<std::is_same_v<L, e4m3> && std::is_same_v<R, e4m3>, scaled_mma_atom, mma_atom<L, R>>;

  static constexpr simt::schedule plan(simt::work which, int d, recipe::granularity scale_per) {
    if (which == simt::work::forward && d <= 64)  // registers do not hold two row tiles and their scales
      return {.row_tiles = 1, .step = 128, .stages = 2, .blocks_per_sm = 1};
    return machine::plan(which, d, scale_per);
  }
};

static_assert(simt::require_machine<scaled_machine>::value);

}  // namespace backends::nvidia
OCTAVO_END_NAMESPACE
