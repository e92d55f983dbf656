// SPDX-License-Identifier: Apache-2.0
// The block-scaled product of sm_120a as an atom.
#pragma once

#include <octavo/backends/cuda/ptx/mma_scaled.hpp>
#include <octavo/backends/cuda/simt/machine.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::nvidia {

/// The layout of mma_atom. The scale of an operand's row, over all of the depth, stands in the lowest byte of the lanes
/// that scale_row names; as lanes 0 and 1 of a quad have different rows, one word serves as left and as right operand's.
struct scaled_mma_atom : mma_atom<e4m3, e4m3> {
  static constexpr bool block_scaled = true;
  OCTAVO_HD static constexpr int scale_row(int lane) { return lane / 4 + 8 * (lane % 2); }
  OCTAVO_HD static constexpr int scale_block(int) { return 0; }

  OCTAVO_DEVICE static void mma(float (&d)[sums], const std::uint32_t (&l)[words], const std::uint32_t (&r)[words],
                                std::uint32_t l_scale, std::uint32_t r_scale) {
    ptx::mma_scaled<0>(d[0], d[1], d[2], d[3], l, r[0], r[2], l_scale, r_scale);
    ptx::mma_scaled<1>(d[4], d[5], d[6], d[7], l, r[1], r[3], l_scale, r_scale);
  }
};
static_assert(simt::Atom<scaled_mma_atom>);

}  // namespace backends::nvidia
OCTAVO_END_NAMESPACE
