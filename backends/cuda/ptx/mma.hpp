// SPDX-License-Identifier: Apache-2.0
// The FP8 matrix product of a warp, D[16][8] += A[16][32] B[8][32]^T with FP32 sums, both operands contracted along their
// bytes. Fragments (PTX ISA, "Matrix Fragments for mma.m16n8k32"), lane l = 4 g + q:
//
//     A word w   row g + 8 (w % 2), elements 4 q + 16 (w / 2) and the three after
//     B word w   column g, elements 4 q + 16 w and the three after
//     D sum i    row g + 8 (i / 2), column 2 q + i % 2
//
// sm_89 and sm_120 multiply FP8. sm_90 and sm_100 do not: their assembler makes the instruction of F16 products and FP32
// additions to D. There it is written out as two F16 products, of the lower two bytes of every word and then of the upper
// two, each added to D by the product itself.
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

#if __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ < 1200
/// Four FP8 numbers as F16: the lower two bytes, the upper two. Exact.
template <class E>
OCTAVO_DEVICE void unpack_pairs(std::uint32_t bytes, std::uint32_t& low, std::uint32_t& high) {
  if constexpr (std::is_same_v<E, e5m2>)
    asm("{\n"
        ".reg .b16 a, b;\n"
        "mov.b32 {a, b}, %2;\n"
        "cvt.rn.f16x2.e5m2x2 %0, a;\n"
        "cvt.rn.f16x2.e5m2x2 %1, b;\n"
        "}"
        : "=r"(low), "=r"(high)
        : "r"(bytes));
  else
    asm("{\n"
        ".reg .b16 a, b;\n"
        "mov.b32 {a, b}, %2;\n"
        "cvt.rn.f16x2.e4m3x2 %0, a;\n"
        "cvt.rn.f16x2.e4m3x2 %1, b;\n"
        "}"
        : "=r"(low), "=r"(high)
        : "r"(bytes));
}
OCTAVO_DEVICE void mma_f16(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// A as its products take it: the words of the first, then those of the second.
template <class L>
OCTAVO_DEVICE void convert_left(const std::uint32_t (&a)[4], std::uint32_t (&to)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) unpack_pairs<L>(a[i], to[i], to[4 + i]);
}
/// A as convert_left makes it.
template <class L, class R>
OCTAVO_DEVICE void mma_converted(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[8],
                                 std::uint32_t b0, std::uint32_t b1) {
  std::uint32_t b_low[2], b_high[2];
  unpack_pairs<R>(b0, b_low[0], b_high[0]);
  unpack_pairs<R>(b1, b_low[1], b_high[1]);
  mma_f16(d0, d1, d2, d3, {a[0], a[1], a[2], a[3]}, b_low[0], b_low[1]);
  mma_f16(d0, d1, d2, d3, {a[4], a[5], a[6], a[7]}, b_high[0], b_high[1]);
}
/// A: elements L; B: elements R; b0 and b1 are words of B.
template <class L, class R>
OCTAVO_DEVICE void mma(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
  std::uint32_t converted[8];
  convert_left<L>(a, converted);
  mma_converted<L, R>(d0, d1, d2, d3, converted, b0, b1);
}
#else
/// A: elements L; B: elements R; b0 and b1 are words of B.
template <class L, class R>
OCTAVO_DEVICE void mma(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                       std::uint32_t b1) {
#define OCTAVO_MMA(types)                                                             \
  asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types                         \
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
/// The unit takes A as it is.
template <class L>
OCTAVO_DEVICE void convert_left(const std::uint32_t (&a)[4], std::uint32_t (&to)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) to[i] = a[i], to[4 + i] = 0;
}
template <class L, class R>
OCTAVO_DEVICE void mma_converted(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[8],
                                 std::uint32_t b0, std::uint32_t b1) {
  mma<L, R>(d0, d1, d2, d3, {a[0], a[1], a[2], a[3]}, b0, b1);
}

#endif

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
