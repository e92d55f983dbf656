// SPDX-License-Identifier: Apache-2.0
// The block-scaled FP8 product of a warp on sm_120a, D[16][8] += (A sA)[16][32] (B sB)[8][32]^T, with an E8M0 scale per row of
// A and of B over these 32 elements. Fragments are those of mma.hpp; scales (PTX ISA, "Block scaling for mma.sync",
// scale_vec::1X), lane l = 4 g + q:
//
//     A   lanes q = 0 and 1 give, in their lowest byte, the scales of rows g and g + 8 (thread-id 0)
//     B   lane q = `from` gives the scale of column g
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/numeric/e4m3.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/mma_scaled.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// E4M3 on both sides. b0 and b1 are words of B. Compiles for sm_120a and its family alone.
template <int from>
OCTAVO_DEVICE void mma_scaled(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1, std::uint32_t a_scale, std::uint32_t b_scale) {
  static_assert(from >= 0 && from < 4, "a lane of a quad");
  asm("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, 0}, {%11}, {0, %12};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(a_scale), "r"(b_scale), "n"(from));
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
