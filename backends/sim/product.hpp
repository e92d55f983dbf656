// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one FP8 matrix product D[64, N] (+)= A[64, 32] B[N, 32]^T.
//
// `model` is what has been measured of Hopper's tensor cores for FP8 (DeepSeek-V3's report names the 14 bits; MMA-Sim,
// arXiv 2511.10909, gives the rules, which are followed here): every product keeps the sum of its operands' exponents
// (a subnormal operand has the exponent of the smallest normal number, a zero none), all products and C are cut toward
// zero to 13 bits below the largest exponent, summed exactly, and the sum is cut to 13 fraction bits. Nothing is
// rounded to nearest.
#pragma once

#include <octavo/backends/sim/options.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/float32.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr int product_rows = 64, product_depth = 32, most_columns = 256;
inline constexpr int fraction_bits = 13;
inline constexpr std::uint32_t product_nan = 0x7fffffff;  ///< the NaN that the tensor cores return

/// The operands as bytes, K-major.
struct operand_bytes {
  std::array<std::uint8_t, product_rows * product_depth> a;
  std::array<std::uint8_t, most_columns * product_depth> b;
};

namespace detail {

inline constexpr std::int16_t no_exponent = -1000;  ///< of a zero: less than any other sum of two

/// Every E4M3 code: its value (0 for NaN) and exponent.
struct e4m3_table {
  std::array<float, 256> value{};
  std::array<double, 256> precise{};
  std::array<std::int16_t, 256> exponent{};
  std::array<bool, 256> nan{};
  constexpr e4m3_table() {
    for (int code = 0; code < 256; ++code) {
      const auto at = static_cast<std::size_t>(code);
      const e4m3 x = e4m3::from_bits(static_cast<std::uint8_t>(code));
      nan[at] = x.is_nan();
      precise[at] = value[at] = nan[at] ? 0.0f : static_cast<float>(x);
      const int field = code >> 3 & 15;
      exponent[at] = value[at] == 0 ? no_exponent : static_cast<std::int16_t>(std::max(field, 1) - e4m3::bias);
    }
  }
};
inline constexpr e4m3_table e4m3_codes{};

// Columns are taken several at a time, in vectors that the processor has. (Written out, since the compiler makes no
// vectors at -O1, which tests are built with; and no wider than its registers, or it would keep them in memory.)
#if defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif
using floats = float __attribute__((vector_size(vector_bytes)));
using doubles = double __attribute__((vector_size(vector_bytes)));
using ints = std::int32_t __attribute__((vector_size(vector_bytes)));
using shorts = std::int16_t __attribute__((vector_size(vector_bytes)));

/// B^T as vectors of elements, columns filled up with zeros; and rows of D.
template <class Vector, class Element>
struct vector_rows {
  static constexpr int per_vector = vector_bytes / static_cast<int>(sizeof(Element));
  static constexpr int row_vectors = most_columns / per_vector;
  static constexpr int used(int columns) { return (columns + per_vector - 1) / per_vector; }

  Vector rows[product_depth][row_vectors];

  Element& at(int row, int column) {
    return reinterpret_cast<Element*>(rows[row])[column];  // a vector may be read as its elements
  }
  void transpose(const operand_bytes& bytes, int columns, const std::array<Element, 256>& meaning, Element filler) {
    for (int n = 0; n < used(columns) * per_vector; ++n)
      for (int k = 0; k < product_depth; ++k)
        at(k, n) = n < columns ? meaning[bytes.b[static_cast<std::size_t>(n * product_depth + k)]] : filler;
  }
};

/// sum + c rounded once to FP32: the double sum is first rounded to odd, which the second rounding then cannot be
/// misled by.
inline float add_once(double sum, float c) {
  double total = sum + c;
  const double of_c = total - sum, error = (sum - (total - of_c)) + (c - of_c);
  if (error != 0 && std::isfinite(total)) {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(total);
    if ((bits & 1) == 0) bits = (error > 0) == (total > 0) ? bits | 1 : bits - 1;
    total = std::bit_cast<double>(bits);
  }
  return static_cast<float>(total);
}

inline int exponent_of(float c) {
  const int field = static_cast<int>(std::bit_cast<std::uint32_t>(c) >> 23 & 255);
  return std::max(field, 1) - 127;
}
inline float cut(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x3ffu); }
inline float power(int exponent) { return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23); }

inline void multiply_ideal(const operand_bytes& bytes, float* d, int columns) {
  using rows = vector_rows<doubles, double>;
  static thread_local rows t;
  t.transpose(bytes, columns, e4m3_codes.precise, 0);
  static thread_local doubles sum[rows::row_vectors];
  for (int m = 0; m < product_rows; ++m, d += columns) {
    const std::uint8_t* a = &bytes.a[static_cast<std::size_t>(m * product_depth)];
    std::fill_n(sum, rows::used(columns), doubles{});
    for (int k = 0; k < product_depth; k += 4) {
      const double a0 = e4m3_codes.precise[a[k]], a1 = e4m3_codes.precise[a[k + 1]];
      const double a2 = e4m3_codes.precise[a[k + 2]], a3 = e4m3_codes.precise[a[k + 3]];
      for (int v = 0; v < rows::used(columns); ++v)  // every sum is exact: 41 bits hold all of them
        sum[v] += t.rows[k][v] * a0 + t.rows[k + 1][v] * a1 + t.rows[k + 2][v] * a2 + t.rows[k + 3][v] * a3;
    }
    const double* exact = reinterpret_cast<const double*>(sum);
    for (int n = 0; n < columns; ++n) d[n] = add_once(exact[n], d[n]);
  }
}

inline shorts larger(shorts x, shorts y) { return x > y ? x : y; }

inline void multiply_model(const operand_bytes& bytes, float* d, int columns) {
  using values = vector_rows<floats, float>;
  using exponents = vector_rows<shorts, std::int16_t>;
  static thread_local values t;
  static thread_local exponents e;
  t.transpose(bytes, columns, e4m3_codes.value, 0);
  e.transpose(bytes, columns, e4m3_codes.exponent, no_exponent);
  static thread_local shorts largest_in[exponents::row_vectors];
  static thread_local floats scale_in[values::row_vectors];
  static thread_local ints sum_in[values::row_vectors];
  static thread_local std::array<int, most_columns> aligned;
  const std::int16_t* largest = reinterpret_cast<const std::int16_t*>(largest_in);
  float* scale = reinterpret_cast<float*>(scale_in);
  const std::int32_t* sum = reinterpret_cast<const std::int32_t*>(sum_in);

  for (int m = 0; m < product_rows; ++m, d += columns) {
    const std::uint8_t* a = &bytes.a[static_cast<std::size_t>(m * product_depth)];
    for (int k = 0; k < product_depth; k += 4) {
      const std::int16_t a0 = e4m3_codes.exponent[a[k]], a1 = e4m3_codes.exponent[a[k + 1]];
      const std::int16_t a2 = e4m3_codes.exponent[a[k + 2]], a3 = e4m3_codes.exponent[a[k + 3]];
      for (int v = 0; v < exponents::used(columns); ++v) {
        const shorts most = larger(larger(e.rows[k][v] + a0, e.rows[k + 1][v] + a1),
                                   larger(e.rows[k + 2][v] + a2, e.rows[k + 3][v] + a3));
        largest_in[v] = k == 0 ? most : larger(largest_in[v], most);
      }
    }
    for (int n = 0; n < columns; ++n) {
      aligned[static_cast<std::size_t>(n)] = std::max<int>(largest[n], d[n] == 0 ? -126 : exponent_of(d[n]));
      // Where all products are zero, C alone is cut, and the scale (which could overflow) does not matter.
      scale[n] = largest[n] < no_exponent / 2 ? 0 : power(fraction_bits - aligned[static_cast<std::size_t>(n)]);
    }
    std::fill_n(sum_in, values::used(columns), ints{});
    for (int k = 0; k < product_depth; k += 2) {
      const float a0 = e4m3_codes.value[a[k]], a1 = e4m3_codes.value[a[k + 1]];
      for (int v = 0; v < values::used(columns); ++v)  // conversions cut toward zero
        sum_in[v] += __builtin_convertvector(t.rows[k][v] * a0 * scale_in[v], ints) +
                     __builtin_convertvector(t.rows[k + 1][v] * a1 * scale_in[v], ints);
    }
    for (int n = 0; n < columns; ++n) {
      if (!std::isfinite(d[n])) continue;
      if (largest[n] < no_exponent / 2)
        d[n] = cut(d[n]);
      else
        d[n] = cut(static_cast<float>(sum[n] + static_cast<int>(d[n] * scale[n])) *
                   power(aligned[static_cast<std::size_t>(n)] - fraction_bits));
    }
  }
}

}  // namespace detail

/// d[64][columns] += A B^T. A NaN in an operand or in D gives NaN.
inline void multiply(const operand_bytes& bytes, float* d, int columns, accumulation how) {
  if (how == accumulation::model)
    detail::multiply_model(bytes, d, columns);
  else
    detail::multiply_ideal(bytes, d, columns);
  const auto any_nan = [](const std::uint8_t* row) {
    return std::any_of(row, row + product_depth, [](std::uint8_t code) { return detail::e4m3_codes.nan[code]; });
  };
  std::array<bool, most_columns> nan_column{};
  for (int n = 0; n < columns; ++n)
    nan_column[static_cast<std::size_t>(n)] = any_nan(&bytes.b[static_cast<std::size_t>(n * product_depth)]);
  for (int m = 0; m < product_rows; ++m) {
    const bool nan_row = any_nan(&bytes.a[static_cast<std::size_t>(m * product_depth)]);
    for (int n = 0; n < columns; ++n)
      if (nan_row || nan_column[static_cast<std::size_t>(n)] || std::isnan(d[m * columns + n]))
        d[m * columns + n] = std::bit_cast<float>(product_nan);
  }
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
