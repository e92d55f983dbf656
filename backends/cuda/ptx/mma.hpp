// SPDX-License-Identifier: Apache-2.0
// The FP8 matrix product of a warp, D[16][8] += A[16][32] B[8][32]^T with FP32 sums, both operands contracted along their
// bytes. Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k32"), lane l = 4 g + q:
//
//     A word w   row g + 8 (w % 2), elements 4 q + 16 (w / 2) and the three after
//     B word w   column g, elements 4 q + 16 w and the three after
//     D sum i    row g + 8 (i / 2), column 2 q + i % 2
//
// sm_89 and sm_120 multiply FP8. sm_90 and sm_100 have the instruction, and the assembler makes it of F16 products: the
// lower two bytes of every word first, then the upper two on top, and an FP32 addition to D.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/mma.hpp>
#else
#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// A: elements L; B: elements R; b0 and b1 are words of B.
template <class L, class R>
OCTAVO_DEVICE void mma(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
#define OCTAVO_MMA(types)                                                    \
  asm("mma.sync.aligned.m16n8k32.row.col.f32." types                         \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)                               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
  constexpr bool left_e5m2 = std::is_same_v<L, e5m2>, right_e5m2 = std::is_same_v<R, e5m2>;
  if constexpr (left_e5m2 && right_e5m2)
    OCTAVO_MMA("e5m2.e5m2");
  else if constexpr (left_e5m2)
    OCTAVO_MMA("e5m2.e4m3");
  else if constexpr (right_e5m2)
    OCTAVO_MMA("e4m3.e5m2");
  else
    OCTAVO_MMA("e4m3.e4m3");
#undef OCTAVO_MMA
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
