// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one tcgen05 product D[128, N] (+)= A[128, 32] B[N, 32]^T of FP8, with or without one E8M0 scale per
// row of A and of B.
//
// `model` follows what has been found of Blackwell's tensor cores (MMA-Sim, arXiv 2511.10909): every product keeps the
// sum of its operands' exponents (a subnormal operand has the exponent of the smallest normal number, a zero none) and
// of its scales'; all products and C are cut toward zero to 25 bits below the largest exponent and summed exactly; the
// sum is cut to FP32. Never compared with a device by this project. `ideal` rounds the exact sum once, to nearest (exact
// where 53 bits hold it: always for E4M3).
#pragma once

#include <octavo/backends/sim/options.hpp>
#include <octavo/backends/sim/product.hpp>
#include <octavo/backends/sim/tensor_operands.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr int mma_rows = 128, mma_depth = 32, mma_most_columns = 256, mma_fraction_bits = 25;

/// Operands of one product: bytes K-major, scales as E8M0 codes (127 is 1).
struct mma_operands {
  std::array<std::uint8_t, mma_rows * mma_depth> a;
  std::array<std::uint8_t, mma_most_columns * mma_depth> b;
  std::array<std::uint8_t, mma_rows> a_scale;
  std::array<std::uint8_t, mma_most_columns> b_scale;
};

namespace detail {

/// Every code of an FP8 type: its value (0 where it is not finite), its exponent, and what it is where not finite.
struct fp8_table {
  std::array<float, 256> value{};
  std::array<std::int16_t, 256> exponent{};
  std::array<float, 256> whole{};  ///< with NaN and infinities
  std::array<bool, 256> finite{};

  template <class E>
  static fp8_table of(int mantissa_bits) {
    fp8_table t;
    for (int code = 0; code < 256; ++code) {
      const auto at = static_cast<std::size_t>(code);
      t.whole[at] = E::decode(static_cast<std::uint8_t>(code));
      t.finite[at] = std::isfinite(t.whole[at]);
      t.value[at] = t.finite[at] ? t.whole[at] : 0.0f;
      const int field = (code & 0x7f) >> mantissa_bits;
      t.exponent[at] = t.value[at] == 0 ? no_exponent : static_cast<std::int16_t>(std::max(field, 1) - E::bias);
    }
    return t;
  }
};
inline const fp8_table& table_of(fp8 type) {
  static const fp8_table e4m3_table = fp8_table::of<e4m3>(3), e5m2_table = fp8_table::of<e5m2>(2);
  return type == fp8::e4m3 ? e4m3_table : e5m2_table;
}

/// x cut toward zero to FP32; subnormal results keep their last place.
inline float cut_to_float(double x) {
  const float nearest = static_cast<float>(x);
  if (!std::isfinite(nearest) || std::fabs(static_cast<double>(nearest)) <= std::fabs(x)) return nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - 1);
}

/// 2^e as a double, for the exponents of sums and scales, |e| < 1000.
inline double precise_power(int e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }

/// 2^e, or 0 where that is too small to matter: what is scaled by it is below 2^40 and is then cut to an integer.
inline float power_or_zero(int e) { return e < -126 ? 0.0f : power(std::min(e, 127)); }

/// What one element is where an operand, a scale or C is not finite: IEEE's rules, and NaN for a NaN.
inline float special_sum(const mma_operands& x, const fp8_table& ta, const fp8_table& tb, int m, int n, float c) {
  const auto row = static_cast<std::size_t>(m), column = static_cast<std::size_t>(n);
  if (x.a_scale[row] == 255 || x.b_scale[column] == 255) return std::bit_cast<float>(product_nan);
  double sum = c;
  for (std::size_t k = 0; k < mma_depth; ++k) {
    const double a = ta.whole[x.a[row * mma_depth + k]], b = tb.whole[x.b[column * mma_depth + k]];
    sum += a * b * precise_power(x.a_scale[row] + x.b_scale[column] - 254);
  }
  return std::isnan(sum) ? std::bit_cast<float>(product_nan) : static_cast<float>(sum);
}

/// Elements of all columns in vectors, `rows` times. (Written with vectors as in product.hpp, and for its reason.)
template <class Vector, class Element, std::size_t rows>
struct column_rows {
  static constexpr std::size_t per_vector = vector_bytes / sizeof(Element);
  Vector row[rows][mma_most_columns / per_vector];

  static std::size_t used(int columns) { return (static_cast<std::size_t>(columns) + per_vector - 1) / per_vector; }
  Element* at(std::size_t r) { return reinterpret_cast<Element*>(row[r]); }  // a vector may be read as its elements
  /// B^T: row k holds element k of each column.
  template <class Meaning>
  void transpose(const mma_operands& x, int columns, const std::array<Meaning, 256>& meaning) {
    for (std::size_t n = 0; n < static_cast<std::size_t>(columns); ++n)
      for (std::size_t k = 0; k < mma_depth; ++k) at(k)[n] = meaning[x.b[n * mma_depth + k]];
  }
};

inline void add_ideal(const mma_operands& x, const fp8_table& ta, const fp8_table& tb, float* d, int columns) {
  using rows = column_rows<doubles, double, mma_depth>;
  static thread_local rows b;
  static thread_local column_rows<doubles, double, 1> sum;
  b.transpose(x, columns, tb.value);
  const std::size_t vectors = rows::used(columns);
  for (std::size_t m = 0; m < mma_rows; ++m, d += columns) {
    const std::uint8_t* a = &x.a[m * mma_depth];
    std::fill_n(sum.row[0], vectors, doubles{});
    for (std::size_t k = 0; k < mma_depth; k += 2) {
      const double a0 = ta.value[a[k]], a1 = ta.value[a[k + 1]];
      for (std::size_t v = 0; v < vectors; ++v) sum.row[0][v] += b.row[k][v] * a0 + b.row[k + 1][v] * a1;
    }
    for (std::size_t n = 0; n < static_cast<std::size_t>(columns); ++n)
      d[n] = add_once(sum.at(0)[n] * precise_power(x.a_scale[m] + x.b_scale[n] - 254), d[n]);
  }
}

inline void add_model(const mma_operands& x, const fp8_table& ta, const fp8_table& tb, float* d, int columns) {
  using values = column_rows<floats, float, mma_depth>;
  using exponents = column_rows<shorts, std::int16_t, mma_depth>;
  static thread_local values b;
  static thread_local exponents e;
  static thread_local column_rows<shorts, std::int16_t, 1> largest;
  static thread_local column_rows<floats, float, 1> scale;
  static thread_local column_rows<ints, std::int32_t, 2> sums;
  std::array<int, mma_most_columns> aligned;
  b.transpose(x, columns, tb.value);
  e.transpose(x, columns, tb.exponent);
  const std::size_t vectors = values::used(columns), short_vectors = exponents::used(columns);
  const auto count = static_cast<std::size_t>(columns);
  constexpr int nothing = 4 * no_exponent;
  for (std::size_t m = 0; m < mma_rows; ++m, d += columns) {
    const std::uint8_t* a = &x.a[m * mma_depth];
    for (std::size_t k = 0; k < mma_depth; ++k) {
      const std::int16_t of_a = ta.exponent[a[k]];
      for (std::size_t v = 0; v < short_vectors; ++v)
        largest.row[0][v] = k == 0 ? e.row[k][v] + of_a : larger(largest.row[0][v], e.row[k][v] + of_a);
    }
    for (std::size_t n = 0; n < count; ++n) {
      const int scales = x.a_scale[m] + x.b_scale[n] - 254, most = largest.at(0)[n];
      const bool none = most < no_exponent / 2;  // all products are zero
      const int of_c = d[n] == 0 ? nothing : exponent_of(d[n]);
      aligned[n] = none ? of_c : std::max(most + scales, of_c);
      scale.at(0)[n] = none ? 0 : power_or_zero(mma_fraction_bits - (aligned[n] - scales));
    }
    for (int half = 0; half < 2; ++half) std::fill_n(sums.row[half], vectors, ints{});
    for (std::size_t k = 0; k < mma_depth; k += 2) {  // two sums: 16 products below 3.6 * 2^25 each fit 31 bits
      const float a0 = ta.value[a[k]], a1 = ta.value[a[k + 1]];
      for (std::size_t v = 0; v < vectors; ++v) {  // conversions cut toward zero
        sums.row[0][v] += __builtin_convertvector(b.row[k][v] * a0 * scale.row[0][v], ints);
        sums.row[1][v] += __builtin_convertvector(b.row[k + 1][v] * a1 * scale.row[0][v], ints);
      }
    }
    for (std::size_t n = 0; n < count; ++n) {
      if (aligned[n] == nothing) {  // nothing but zeros
        d[n] = 0;
        continue;
      }
      const auto c =
          static_cast<std::int64_t>(static_cast<double>(d[n]) * precise_power(mma_fraction_bits - aligned[n]));
      const std::int64_t sum = std::int64_t{sums.at(0)[n]} + sums.at(1)[n] + c;
      d[n] = cut_to_float(static_cast<double>(sum) * precise_power(aligned[n] - mma_fraction_bits));
    }
  }
}

}  // namespace detail

/// d[128][columns] += (A, scaled) (B, scaled)^T.
inline void multiply_scaled(const mma_operands& x, fp8 type_a, fp8 type_b, float* d, int columns, accumulation how) {
  const detail::fp8_table &ta = detail::table_of(type_a), &tb = detail::table_of(type_b);
  const auto special = [](const std::uint8_t* codes, const detail::fp8_table& t, std::uint8_t scale) {
    return scale == 255 || !std::all_of(codes, codes + mma_depth, [&](std::uint8_t c) { return t.finite[c]; });
  };
  std::array<bool, mma_rows> row_special;
  std::array<bool, mma_most_columns> column_special{};
  for (std::size_t m = 0; m < mma_rows; ++m) row_special[m] = special(&x.a[m * mma_depth], ta, x.a_scale[m]);
  for (std::size_t n = 0; n < static_cast<std::size_t>(columns); ++n)
    column_special[n] = special(&x.b[n * mma_depth], tb, x.b_scale[n]);
  struct element {
    int m, n;
    float c;
  };
  std::vector<element> specials;
  for (int m = 0; m < mma_rows; ++m)
    for (int n = 0; n < columns; ++n) {
      float& c = d[m * columns + n];
      if (!row_special[static_cast<std::size_t>(m)] && !column_special[static_cast<std::size_t>(n)] && std::isfinite(c))
        continue;
      specials.push_back({m, n, c});
      c = 0;
    }
  if (how == accumulation::model)
    detail::add_model(x, ta, tb, d, columns);
  else
    detail::add_ideal(x, ta, tb, d, columns);
  for (const element& s : specials) d[s.m * columns + s.n] = detail::special_sum(x, ta, tb, s.m, s.n, s.c);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
