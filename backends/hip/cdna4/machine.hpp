// SPDX-License-Identifier: Apache-2.0
// CDNA4 (MI350X, MI355X; gfx950) as a machine for the lane-level kernels: OCP's FP8, matrix instructions with block scales
// and twice CDNA3's rate, 160 KB of shared memory. mx32 gives them its scales, token and tile give them ones.
#pragma once

#include <octavo/backends/hip/cdna4/atoms.hpp>
#include <octavo/backends/hip/common/wave.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cdna4 {

struct machine : hip_common::wave_machine {
  static constexpr int shared_bytes = 160 * 1024;

  template <class Recipe>
  static constexpr bool computes =
      Recipe::scale_per == recipe::granularity::block32 || Recipe::scale_per == recipe::granularity::tile128 ||
      Recipe::scale_per == recipe::granularity::token;

  template <class L, class R>
  using atom = scaled_mfma_32<L, R>;

  /// Steps of 64 tokens are one depth of the atom.
  static constexpr simt::schedule plan(simt::work which, int d, recipe::granularity) {
    switch (which) {
      case simt::work::forward:
      case simt::work::delta_sums:
        return {.row_tiles = 1, .step = 64, .stages = 2, .blocks_per_sm = d <= 128 ? 2 : 1};
      case simt::work::dq:
        return {.row_tiles = 1, .step = 64, .stages = 2, .blocks_per_sm = 1};
      case simt::work::dkv:
        return {.row_tiles = 1, .step = 64, .stages = 2, .blocks_per_sm = 1, .parts = d <= 128 ? 1 : 2};
    }
    return {};
  }

  template <class E>
  OCTAVO_DEVICE static std::uint32_t pack(float a, float b, float c, float d) {
    return amdgcn::pack_float8<E>(a, b, c, d, 1.0f);
  }
  template <class E>
  OCTAVO_DEVICE static std::uint32_t payload(float a, float b, float c, float d) {
    return pack<E>(a, b, c, d);
  }
  template <class E>
  OCTAVO_DEVICE static void unpack(std::uint32_t word, float (&x)[4]) {
    amdgcn::unpack_float8<E>(word, x);
  }
  template <class E>
  OCTAVO_DEVICE static std::uint32_t operand_bytes(std::uint32_t word) {
    return word;
  }
  OCTAVO_DEVICE static bool is_weight(std::uint32_t byte) { return (byte & 0x7f) != 0; }
};

static_assert(simt::require_machine<machine>::value);

}  // namespace backends::cdna4
OCTAVO_END_NAMESPACE
