// SPDX-License-Identifier: Apache-2.0
// The FP8 matrix instructions of CDNA3 and CDNA4:
//
//     D[M][N] += A[M][K] B[N][K]^T          all operands in registers of the wave's 64 lanes
//
// and where their elements are. Sources: AMD Matrix Instruction Calculator (github.com/ROCm/
// amd_matrix_instruction_calculator, -a CDNA3 -i v_mfma_f32_16x16x32_fp8_fp8 -d, and 32x32x16 alike); for CDNA4's
// 32x32x64, AMD's article "Matrix Core Programming on AMD CDNA3 and CDNA4 architecture" (rocm.blogs.amd.com), figure 9
// and its kernel; 16x16x128 is the same rule with four groups of lanes.
//
//     instruction       row of A (B)   k of byte e of a lane's operand          row i of D (of A)
//     16x16x32          lane % 16      lane / 16 * 8 + e                        lane / 16 * 4 + r
//     32x32x16          lane % 32      lane / 32 * 8 + e                        r / 4 * 8 + lane / 32 * 4 + r % 4
//     scale 16x16x128   lane % 16      e / 16 * 64 + lane / 16 * 16 + e % 16    as 16x16x32
//     scale 32x32x64    lane % 32      e / 16 * 32 + lane / 32 * 16 + e % 16    as 32x32x16
//
// where r is the number of the accumulator; its column j of D, which is B's row, is lane % rows. The scaled ones multiply
// the sum of each 32 products along K by two powers of two: byte 0 of a lane's scale is E8M0, for its row and for the
// block k / 32 = lane / rows, whose elements are not those that the lane holds.
#pragma once

#include <octavo/backends/hip/amdgcn/device.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

/// Element formats of an operand, as the scaled instructions number them.
enum class format : int { fp8 = 0, bf8 = 1 };

/// One of the instructions: its shape and layout.
struct matrix_shape {
  int rows, depth;

  constexpr int sums() const { return rows * rows / wave_lanes; }
  constexpr int bytes() const { return rows * depth / wave_lanes; }
  constexpr int groups() const { return wave_lanes / rows; }

  constexpr int operand_row(int lane) const { return lane % rows; }
  constexpr int operand_depth(int lane, int byte) const {
    const int run = bytes() < 16 ? bytes() : 16;  // consecutive k in a lane
    return (byte / run * groups() + lane / rows) * run + byte % run;
  }
  constexpr int sum_i(int lane, int r) const { return r / 4 * 4 * groups() + lane / rows * 4 + r % 4; }
  constexpr int sum_j(int lane) const { return lane % rows; }
  /// The block of 32 along K that a lane's scale is for.
  constexpr int scale_block(int lane) const { return lane / rows; }
};
inline constexpr matrix_shape shape_16x16x32{16, 32}, shape_32x32x16{32, 16}, shape_16x16x128{16, 128},
    shape_32x32x64{32, 64};

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE

#if !defined(__HIP__)
#include <octavo/backends/sim/amdgcn/matrix.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

namespace detail {
template <int N>
using float_vector = float __attribute__((ext_vector_type(N)));

// Whole, and not number by number: so the compiler keeps accumulators together from one product to the next, where it
// would else copy them together before each and apart after it.
template <int N>
OCTAVO_DEVICE float_vector<N> gathered(const float (&d)[N]) {
  float_vector<N> x;
  __builtin_memcpy(&x, d, sizeof x);
  return x;
}
template <class Vector, int N>
OCTAVO_DEVICE void scatter(const Vector& x, float (&d)[N]) {
  static_assert(sizeof x == sizeof d);
  __builtin_memcpy(d, &x, sizeof d);
}
OCTAVO_DEVICE long pair(const std::uint32_t* x) { return static_cast<long>(x[0] | std::uint64_t{x[1]} << 32); }
}  // namespace detail

/// v_mfma_f32_16x16x32_fp8_fp8 and its bf8 siblings (CDNA3: FNUZ; CDNA4: OCP). a, b: two words.
template <format A, format B>
OCTAVO_DEVICE void mfma_16x16x32(float (&d)[4], const std::uint32_t* a, const std::uint32_t* b) {
  const long x = detail::pair(a), y = detail::pair(b);
  const auto c = detail::gathered(d);
  if constexpr (A == format::fp8 && B == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(x, y, c, 0, 0, 0), d);
  else if constexpr (A == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_16x16x32_fp8_bf8(x, y, c, 0, 0, 0), d);
  else if constexpr (B == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_16x16x32_bf8_fp8(x, y, c, 0, 0, 0), d);
  else
    detail::scatter(__builtin_amdgcn_mfma_f32_16x16x32_bf8_bf8(x, y, c, 0, 0, 0), d);
}
/// v_mfma_f32_32x32x16_fp8_fp8 and its bf8 siblings. a, b: two words.
template <format A, format B>
OCTAVO_DEVICE void mfma_32x32x16(float (&d)[16], const std::uint32_t* a, const std::uint32_t* b) {
  const long x = detail::pair(a), y = detail::pair(b);
  const auto c = detail::gathered(d);
  if constexpr (A == format::fp8 && B == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(x, y, c, 0, 0, 0), d);
  else if constexpr (A == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_32x32x16_fp8_bf8(x, y, c, 0, 0, 0), d);
  else if constexpr (B == format::fp8)
    detail::scatter(__builtin_amdgcn_mfma_f32_32x32x16_bf8_fp8(x, y, c, 0, 0, 0), d);
  else
    detail::scatter(__builtin_amdgcn_mfma_f32_32x32x16_bf8_bf8(x, y, c, 0, 0, 0), d);
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
#endif
