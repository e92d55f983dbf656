// SPDX-License-Identifier: Apache-2.0
// CDNA4's matrix instructions with block scales. matrix.hpp has their layout and its sources.
#pragma once

#include <octavo/backends/hip/amdgcn/matrix.hpp>

#if defined(__HIP__)
#if !__has_builtin(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4)
#error "this compiler has no block-scaled matrix instructions of CDNA4 (gfx950): take clang 20 or newer, or ROCm 7"
#endif
OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

namespace detail {
using int_vector = int __attribute__((ext_vector_type(8)));
OCTAVO_DEVICE int_vector eight(const std::uint32_t (&x)[8]) {
  int_vector y;
  OCTAVO_UNROLL
  for (int i = 0; i < 8; ++i) y[i] = static_cast<int>(x[i]);
  return y;
}
}  // namespace detail

/// v_mfma_scale_f32_16x16x128_f8f6f4 (CDNA4): one E8M0 per operand and lane, in byte 0.
template <format A, format B>
OCTAVO_DEVICE void mfma_scale_16x16x128(float (&d)[4], const std::uint32_t (&a)[8], const std::uint32_t (&b)[8],
                                        std::uint32_t a_scale, std::uint32_t b_scale) {
  detail::scatter(__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(
                      detail::eight(a), detail::eight(b), detail::gathered(d), static_cast<int>(A), static_cast<int>(B),
                      0, static_cast<int>(a_scale), 0, static_cast<int>(b_scale)),
                  d);
}
/// v_mfma_scale_f32_32x32x64_f8f6f4 (CDNA4).
template <format A, format B>
OCTAVO_DEVICE void mfma_scale_32x32x64(float (&d)[16], const std::uint32_t (&a)[8], const std::uint32_t (&b)[8],
                                       std::uint32_t a_scale, std::uint32_t b_scale) {
  detail::scatter(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(
                      detail::eight(a), detail::eight(b), detail::gathered(d), static_cast<int>(A), static_cast<int>(B),
                      0, static_cast<int>(a_scale), 0, static_cast<int>(b_scale)),
                  d);
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
#endif
