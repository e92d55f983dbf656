// SPDX-License-Identifier: Apache-2.0
// Conversions and functions of the arithmetic units.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/convert.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// 2^x to about 2^-22 of its value; subnormal arguments and results are 0.
OCTAVO_DEVICE float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// a b, rounded: never fused with an addition.
OCTAVO_DEVICE float multiply(float a, float b) { return __fmul_rn(a, b); }

/// Four numbers rounded to E (nearest even, saturating, NaN kept), the first in the lowest byte.
template <class E>
OCTAVO_DEVICE std::uint32_t pack(float a, float b, float c, float d);
template <>
OCTAVO_DEVICE std::uint32_t pack<e4m3>(float a, float b, float c, float d) {
  std::uint32_t bytes;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}"
      : "=r"(bytes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return bytes;
}
template <>
OCTAVO_DEVICE std::uint32_t pack<e5m2>(float a, float b, float c, float d) {
  std::uint32_t bytes;
  asm("{\n"
      ".reg .b16 low, high;\n"
      "cvt.rn.satfinite.e5m2x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e5m2x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n"
      "}"
      : "=r"(bytes)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return bytes;
}

/// Four e4m3 numbers of a word, the lowest byte first.
OCTAVO_DEVICE void unpack_e4m3(std::uint32_t bytes, float (&x)[4]) {
  asm("{\n"
      ".reg .b16 low, high, a, b, c, d;\n"
      ".reg .b32 ab, cd;\n"
      "mov.b32 {low, high}, %4;\n"
      "cvt.rn.f16x2.e4m3x2 ab, low;\n"
      "cvt.rn.f16x2.e4m3x2 cd, high;\n"
      "mov.b32 {a, b}, ab;\n"
      "mov.b32 {c, d}, cd;\n"
      "cvt.f32.f16 %0, a;\n"
      "cvt.f32.f16 %1, b;\n"
      "cvt.f32.f16 %2, c;\n"
      "cvt.f32.f16 %3, d;\n"
      "}"
      : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
      : "r"(bytes));
}

/// Two numbers rounded to a 16-bit type (nearest even), the first in the lower half.
OCTAVO_DEVICE std::uint32_t pack_bf16(float a, float b) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(a), "f"(b));
  return word;
}
OCTAVO_DEVICE std::uint32_t pack_f16(float a, float b) {
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(word) : "f"(a), "f"(b));
  return word;
}

/// The two f16 numbers of a word.
OCTAVO_DEVICE void unpack_f16(std::uint32_t word, float& low, float& high) {
  asm("{\n"
      ".reg .b16 low, high;\n"
      "mov.b32 {low, high}, %2;\n"
      "cvt.f32.f16 %0, low;\n"
      "cvt.f32.f16 %1, high;\n"
      "}"
      : "=f"(low), "=f"(high)
      : "r"(word));
}

/// The larger of two numbers, or NaN if one of them is.
OCTAVO_DEVICE float larger_or_nan(float a, float b) {
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}

/// Tells the compiler that the word may change here: it then keeps the word and not what it made of it.
OCTAVO_DEVICE void keep_as_is(std::uint32_t& word) { asm volatile("" : "+r"(word)); }

/// Byte i of the result is byte (selectors >> 4 i & 7) of the eight bytes {low, high}.
OCTAVO_DEVICE std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  return __byte_perm(low, high, selectors);
}

/// Stores four 8 x 8 matrices of 16-bit elements transposed. As a register of a matrix product holds them, lane l has
/// elements (row l / 4, columns 2 (l % 4) and + 1) of each; lane l gives the address of row l % 8 of the transposed
/// matrix l / 8, 16 bytes.
OCTAVO_DEVICE void store_transposed(void* row, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
               "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
