// SPDX-License-Identifier: Apache-2.0
// Conversions and functions of CDNA's vector unit. FP8 is FNUZ on CDNA3 and OCP's on CDNA4, by the same instructions:
// F names the format, which must be the processor's.
#pragma once

#include <octavo/backends/hip/amdgcn/device.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e4m3fnuz.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e5m2fnuz.hpp>

#if !defined(__HIP__)
#include <octavo/backends/sim/amdgcn/convert.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

/// v_exp_f32: 2^x within 1 unit in the last place; subnormal results are 0.
OCTAVO_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }

/// v_cvt_pk_fp8_f32 or v_cvt_pk_bf8_f32, twice: four numbers times `factor` to nearest even. NaN stays NaN, and what does
/// not fit becomes an infinity where there is one, else NaN (with MODE.FP16_OVFL as it is at a kernel's start).
template <class F>
OCTAVO_DEVICE std::uint32_t pack_float8(float a, float b, float c, float d, float factor) {
  using pair = float __attribute__((ext_vector_type(2)));  // v_pk_mul_f32
  const pair low = pair{a, b} * factor, high = pair{c, d} * factor;
  int word = 0;
  if constexpr (F::exponent_bits == 4) {
    word = __builtin_amdgcn_cvt_pk_fp8_f32(low.x, low.y, word, false);
    word = __builtin_amdgcn_cvt_pk_fp8_f32(high.x, high.y, word, true);
  } else {
    word = __builtin_amdgcn_cvt_pk_bf8_f32(low.x, low.y, word, false);
    word = __builtin_amdgcn_cvt_pk_bf8_f32(high.x, high.y, word, true);
  }
  return static_cast<std::uint32_t>(word);
}
/// v_cvt_pk_f32_fp8 or v_cvt_pk_f32_bf8, twice.
template <class F>
OCTAVO_DEVICE void unpack_float8(std::uint32_t word, float (&x)[4]) {
  using pair = float __attribute__((ext_vector_type(2)));
  pair low, high;
  if constexpr (F::exponent_bits == 4) {
    low = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(word), false);
    high = __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(word), true);
  } else {
    low = __builtin_amdgcn_cvt_pk_f32_bf8(static_cast<int>(word), false);
    high = __builtin_amdgcn_cvt_pk_f32_bf8(static_cast<int>(word), true);
  }
  x[0] = low.x, x[1] = low.y, x[2] = high.x, x[3] = high.y;
}

/// v_perm_b32: byte i is byte (bits 8 i to 8 i + 2 of `selectors`) of {low, high}.
OCTAVO_DEVICE std::uint32_t perm(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
  return __builtin_amdgcn_perm(high, low, selectors);
}

OCTAVO_DEVICE float tanh(float x) { return ::tanhf(x); }

/// a b, rounded: never fused with an addition.
OCTAVO_DEVICE float multiply(float a, float b) {
#pragma clang fp contract(off)
  return a * b;
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
#endif
