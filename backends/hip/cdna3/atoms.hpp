// SPDX-License-Identifier: Apache-2.0
// CDNA3's FP8 matrix instructions as atoms.
#pragma once

#include <octavo/backends/hip/common/atoms.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cdna3 {

using hip_common::atom_layout, hip_common::format_of;

// Sums keep FP32's digits (sim/amdgcn/sums.hpp has the rules): c loses none, and sixteen products at a time are rounded
// to nearest even.

/// CDNA3's FP8 is FNUZ: a byte is worth half of its OCP value in either operand.
inline constexpr float fnuz_unit = 4;

/// CDNA3, 16 x 16 x 64: two v_mfma_f32_16x16x32 of 16 clocks. No kernel uses it (README.md says why): the layout is tested,
/// and that the kernels' images serve it.
template <class L, class R>
struct mfma_16 : atom_layout<16, 32, 2> {
  static constexpr float unit = fnuz_unit;
  static constexpr bool block_scaled = false, long_sums = true;
  static OCTAVO_DEVICE void mma(float (&d)[4], const std::uint32_t (&l)[4], const std::uint32_t (&r)[4]) {
    amdgcn::mfma_16x16x32<format_of<R>, format_of<L>>(d, r, l);
    amdgcn::mfma_16x16x32<format_of<R>, format_of<L>>(d, r + 2, l + 2);
  }
};
/// CDNA3, 32 x 32 x 32: two v_mfma_f32_32x32x16 of 32 clocks. Half the operand bytes per product of mfma_16.
template <class L, class R>
struct mfma_32 : atom_layout<32, 16, 2> {
  static constexpr float unit = fnuz_unit;
  static constexpr bool block_scaled = false, long_sums = true;
  static OCTAVO_DEVICE void mma(float (&d)[16], const std::uint32_t (&l)[4], const std::uint32_t (&r)[4]) {
    amdgcn::mfma_32x32x16<format_of<R>, format_of<L>>(d, r, l);
    amdgcn::mfma_32x32x16<format_of<R>, format_of<L>>(d, r + 2, l + 2);
  }
};

}  // namespace backends::cdna3
OCTAVO_END_NAMESPACE
