// SPDX-License-Identifier: Apache-2.0
// Additions of mixed precision, which the arithmetic units have from sm_100 on.
#pragma once

#include <octavo/backends/cuda/ptx/convert.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/mixed.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// Adds the four e4m3 numbers of a word, the lowest byte first, to four sums: two conversions and four additions.
OCTAVO_DEVICE void add_e4m3(std::uint32_t bytes, float (&sum)[4]) {
  asm("{\n"
      ".reg .b16 low, high, a, b, c, d;\n"
      ".reg .b32 ab, cd;\n"
      "mov.b32 {low, high}, %4;\n"
      "cvt.rn.f16x2.e4m3x2 ab, low;\n"
      "cvt.rn.f16x2.e4m3x2 cd, high;\n"
      "mov.b32 {a, b}, ab;\n"
      "mov.b32 {c, d}, cd;\n"
      "add.rn.f32.f16 %0, a, %0;\n"
      "add.rn.f32.f16 %1, b, %1;\n"
      "add.rn.f32.f16 %2, c, %2;\n"
      "add.rn.f32.f16 %3, d, %3;\n"
      "}"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(bytes));
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
