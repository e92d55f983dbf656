// SPDX-License-Identifier: Apache-2.0
// From a payload and its scales back to numbers: X^ of the numerics.
#pragma once

#include <octavo/scaling/plane.hpp>

OCTAVO_BEGIN_NAMESPACE

/// Token `token` of a plane's row-wise image, d channels, as real values.
template <class Recipe, class E>
OCTAVO_HD void dequantize_row(const payload_plane& x, std::int64_t token, int d, float* out) {
  if constexpr (!recipe::is_fp8<Recipe>) {
    const auto* from = reinterpret_cast<const E*>(x.rowwise) + token * x.rowwise_stride;
    for (int c = 0; c < d; ++c) out[c] = static_cast<float>(from[c]);
  } else {
    const std::uint8_t* from = x.rowwise + token * x.rowwise_stride;
    if constexpr (Recipe::scale_per == recipe::granularity::block32) {
      const std::uint8_t* blocks = x.rowwise_blocks + token * (d / mx_block);
      for (int c = 0; c < d; ++c) out[c] = E::decode(from[c]) * static_cast<float>(e8m0{blocks[c / mx_block]});
    } else {
      const float scale = token_scale<Recipe>(x, token);
      for (int c = 0; c < d; ++c) out[c] = E::decode(from[c]) * scale;
    }
  }
}

OCTAVO_END_NAMESPACE
