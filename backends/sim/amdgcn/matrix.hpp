// SPDX-License-Identifier: Apache-2.0
// backends/hip/amdgcn/matrix.hpp on the host: the lanes' registers become two matrices, and their product goes back.
// Included by it, after the shapes.
#pragma once

#include <octavo/backends/sim/amdgcn/sums.hpp>
#include <octavo/backends/sim/instruction.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e4m3fnuz.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e5m2fnuz.hpp>
#include <octavo/numeric/e8m0.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

namespace detail {

template <format F>
using fnuz_format = std::conditional_t<F == format::fp8, e4m3fnuz, e5m2fnuz>;
template <format F>
using ocp_format = std::conditional_t<F == format::fp8, e4m3, e5m2>;

/// What a lane brings.
struct matrix_registers {
  float* d;
  const std::uint32_t *a, *b;
  std::uint32_t a_scale = 0, b_scale = 0;
};
using lanes_of_matrix = std::span<matrix_registers* const>;

/// An operand as rows of bytes along K.
template <int Rows, int Depth>
struct operand_rows {
  std::uint8_t row[Rows][Depth];
};
template <int Rows, int Depth>
void gather(operand_rows<Rows, Depth>& to, const std::uint32_t* const (&words)[wave_lanes]) {
  static constexpr matrix_shape shape{Rows, Depth};
  for (int lane = 0; lane < wave_lanes; ++lane) {
    std::uint8_t bytes[shape.bytes()];
    std::memcpy(bytes, words[lane], sizeof bytes);
    for (int e = 0; e < shape.bytes(); ++e) to.row[shape.operand_row(lane)][shape.operand_depth(lane, e)] = bytes[e];
  }
}

/// sum(i, j, row i of A, row j of B, d) for every element of D.
template <int Rows, int Depth, class Sum>
void multiply(lanes_of_matrix lanes, Sum sum) {
  static constexpr matrix_shape shape{Rows, Depth};
  const std::uint32_t *a_words[wave_lanes], *b_words[wave_lanes];
  for (int lane = 0; lane < wave_lanes; ++lane) {
    a_words[lane] = lanes[static_cast<std::size_t>(lane)]->a;
    b_words[lane] = lanes[static_cast<std::size_t>(lane)]->b;
  }
  operand_rows<Rows, Depth> a, b;
  gather(a, a_words);
  gather(b, b_words);
  for (int lane = 0; lane < wave_lanes; ++lane)
    for (int r = 0; r < shape.sums(); ++r) {
      const int i = shape.sum_i(lane, r), j = shape.sum_j(lane);
      float& d = lanes[static_cast<std::size_t>(lane)]->d[r];
      d = sum(i, j, a.row[i], b.row[j], d);
    }
}

/// CDNA3's: FNUZ operands.
template <int Rows, int Depth, format A, format B>
void mfma(const char* name, matrix_registers& mine, const sim::site& where) {
  using a_format = fnuz_format<A>;
  using b_format = fnuz_format<B>;
  const bool ideal = sim::the_machine().options.accumulator == sim::accumulation::ideal;
  sim::matrix_instruction(
      name, mine,
      [ideal](lanes_of_matrix lanes) {
        multiply<Rows, Depth>(lanes, [ideal](int, int, const std::uint8_t* a, const std::uint8_t* b, float d) {
          return ideal ? sim::ideal_sum<a_format, b_format>(a, b, Depth, d)
                       : sim::cdna3_sum<a_format, b_format>(a, b, Depth, d);
        });
      },
      where);
}

/// An operand of a scaled product as numbers, its scales multiplied in. Rows are what all products read, so each is
/// decoded once.
template <int Rows, int Depth>
struct operand_numbers {
  double row[Rows][Depth];

  template <class E>
  void decode(const operand_rows<Rows, Depth>& codes, const float (&scale)[Rows][Depth / 32]) {
    for (int i = 0; i < Rows; ++i)
      for (int k = 0; k < Depth; ++k)
        row[i][k] = sim::codes<E>.value[codes.row[i][k]] * static_cast<double>(scale[i][k / 32]);
  }
  /// Running sums side by side, which a compiler makes vectors of. Products are exact, and sums of them to 2^-53.
  static double dot(const double (&a)[Depth], const double (&b)[Depth]) {
    constexpr int side_by_side = 8;
    double sum[side_by_side] = {};
    for (int k = 0; k < Depth; k += side_by_side)
      for (int e = 0; e < side_by_side; ++e) sum[e] += a[k + e] * b[k + e];
    for (int half = side_by_side / 2; half > 0; half /= 2)
      for (int e = 0; e < half; ++e) sum[e] += sum[e + half];
    return sum[0];
  }
};

/// CDNA4's: OCP operands, a scale per row and 32 elements of each.
template <int Rows, int Depth, format A, format B>
void mfma_scale(const char* name, matrix_registers& mine, const sim::site& where) {
  static constexpr matrix_shape shape{Rows, Depth};
  constexpr int block = 32;
  sim::matrix_instruction(
      name, mine,
      [](lanes_of_matrix lanes) {
        float a_scale[Rows][Depth / block], b_scale[Rows][Depth / block];
        const std::uint32_t *a_words[wave_lanes], *b_words[wave_lanes];
        for (int lane = 0; lane < wave_lanes; ++lane) {
          const matrix_registers& r = *lanes[static_cast<std::size_t>(lane)];
          const int row = shape.operand_row(lane), at = shape.scale_block(lane);
          a_scale[row][at] = static_cast<float>(e8m0{static_cast<std::uint8_t>(r.a_scale)});
          b_scale[row][at] = static_cast<float>(e8m0{static_cast<std::uint8_t>(r.b_scale)});
          a_words[lane] = r.a, b_words[lane] = r.b;
        }
        operand_rows<Rows, Depth> codes;
        operand_numbers<Rows, Depth> a, b;
        gather(codes, a_words);
        a.template decode<ocp_format<A>>(codes, a_scale);
        gather(codes, b_words);
        b.template decode<ocp_format<B>>(codes, b_scale);
        for (int lane = 0; lane < wave_lanes; ++lane)
          for (int r = 0; r < shape.sums(); ++r) {
            float& d = lanes[static_cast<std::size_t>(lane)]->d[r];
            d = static_cast<float>(static_cast<double>(d) +
                                   a.dot(a.row[shape.sum_i(lane, r)], b.row[shape.sum_j(lane)]));
          }
      },
      where);
}

/// The name in assembler of the instruction for these formats.
template <format A, format B>
constexpr const char* named(const char* fp8_fp8, const char* fp8_bf8, const char* bf8_fp8, const char* bf8_bf8) {
  return A == format::fp8 ? (B == format::fp8 ? fp8_fp8 : fp8_bf8) : (B == format::fp8 ? bf8_fp8 : bf8_bf8);
}

}  // namespace detail

template <format A, format B>
void mfma_16x16x32(float (&d)[4], const std::uint32_t* a, const std::uint32_t* b,
                   const sim::site where = sim::site::current()) {
  detail::matrix_registers mine{d, a, b};
  detail::mfma<16, 32, A, B>(detail::named<A, B>("v_mfma_f32_16x16x32_fp8_fp8", "v_mfma_f32_16x16x32_fp8_bf8",
                                                 "v_mfma_f32_16x16x32_bf8_fp8", "v_mfma_f32_16x16x32_bf8_bf8"),
                             mine, where);
}
template <format A, format B>
void mfma_32x32x16(float (&d)[16], const std::uint32_t* a, const std::uint32_t* b,
                   const sim::site where = sim::site::current()) {
  detail::matrix_registers mine{d, a, b};
  detail::mfma<32, 16, A, B>(detail::named<A, B>("v_mfma_f32_32x32x16_fp8_fp8", "v_mfma_f32_32x32x16_fp8_bf8",
                                                 "v_mfma_f32_32x32x16_bf8_fp8", "v_mfma_f32_32x32x16_bf8_bf8"),
                             mine, where);
}
template <format A, format B>
void mfma_scale_16x16x128(float (&d)[4], const std::uint32_t (&a)[8], const std::uint32_t (&b)[8],
                          std::uint32_t a_scale, std::uint32_t b_scale, const sim::site where = sim::site::current()) {
  detail::matrix_registers mine{d, a, b, a_scale, b_scale};
  detail::mfma_scale<16, 128, A, B>("v_mfma_scale_f32_16x16x128_f8f6f4", mine, where);
}
template <format A, format B>
void mfma_scale_32x32x64(float (&d)[16], const std::uint32_t (&a)[8], const std::uint32_t (&b)[8],
                         std::uint32_t a_scale, std::uint32_t b_scale, const sim::site where = sim::site::current()) {
  detail::matrix_registers mine{d, a, b, a_scale, b_scale};
  detail::mfma_scale<32, 64, A, B>("v_mfma_scale_f32_32x32x64_f8f6f4", mine, where);
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
