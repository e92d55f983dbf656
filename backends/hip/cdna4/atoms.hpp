// SPDX-License-Identifier: Apache-2.0
// CDNA4's FP8 matrix instructions as atoms.
#pragma once

#include <octavo/backends/hip/amdgcn/matrix_scale.hpp>
#include <octavo/backends/hip/common/atoms.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cdna4 {

using hip_common::atom_layout, hip_common::format_of;

/// CDNA4's scaled instructions: OCP operands, an E8M0 for each 32 products along K. Byte 0 of a lane's word of scales is
/// that of row scale_row(lane), block scale_block(lane).
template <int Rows, int Depth>
struct scaled_layout : atom_layout<Rows, Depth, 1> {
  static constexpr float unit = 1;
  static constexpr bool block_scaled = true;
  static constexpr bool long_sums = false;  ///< for all that is public
  OCTAVO_HD static constexpr int scale_row(int lane) { return scaled_layout::shape.operand_row(lane); }
  OCTAVO_HD static constexpr int scale_block(int lane) { return scaled_layout::shape.scale_block(lane); }
};
inline constexpr std::uint32_t scale_of_one = 127;  ///< E8M0

/// CDNA4, 16 x 16 x 128: v_mfma_scale_f32_16x16x128_f8f6f4. Sums rounded in place as a left operand meet tokens of two
/// blocks of 32 under one scale: for products whose left operand comes from memory, or has one scale.
/// No kernel uses it (README.md says why): the layout is tested, and that the kernels' images serve it.
template <class L, class R>
struct scaled_mfma_16 : scaled_layout<16, 128> {
  static OCTAVO_DEVICE void mma(float (&d)[4], const std::uint32_t (&l)[8], const std::uint32_t (&r)[8],
                                std::uint32_t l_scale = scale_of_one, std::uint32_t r_scale = scale_of_one) {
    amdgcn::mfma_scale_16x16x128<format_of<R>, format_of<L>>(d, r, l, r_scale, l_scale);
  }
};
/// CDNA4, 32 x 32 x 64: v_mfma_scale_f32_32x32x64_f8f6f4. Sums rounded in place keep to their blocks of 32.
template <class L, class R>
struct scaled_mfma_32 : scaled_layout<32, 64> {
  static OCTAVO_DEVICE void mma(float (&d)[16], const std::uint32_t (&l)[8], const std::uint32_t (&r)[8],
                                std::uint32_t l_scale = scale_of_one, std::uint32_t r_scale = scale_of_one) {
    amdgcn::mfma_scale_32x32x64<format_of<R>, format_of<L>>(d, r, l, r_scale, l_scale);
  }
};

}  // namespace backends::cdna4
OCTAVO_END_NAMESPACE
