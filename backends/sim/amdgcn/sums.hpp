// SPDX-License-Identifier: Apache-2.0
// How a matrix instruction of CDNA adds up c + sum a_k b_k.
//
// `cdna3_sum` is what has been measured of CDNA3's FP8 instructions (MMA-Sim, arXiv 2511.10909, whose rules are followed
// here): sixteen products at a time, in the order of k. Products of even k, and those of odd k, are cut toward zero to
// 24 bits below the largest exponent among the eight (operands' exponents added; a subnormal operand has that of the
// smallest normal number) and added. The two sums are floored to 24 bits below the larger exponent of the two and added;
// the result, floored to 31 bits below the larger of its exponent and c's, meets c, floored to 24 bits there (or gone,
// when c's exponent is 26 or more below); their sum is rounded to nearest even.
//
// Of CDNA4 nothing of the kind is public: its products are summed exactly, and rounded once.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float32.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// The 256 codes of an FP8 format: value = significand * 2^(exponent - Format::mantissa_bits), NaN and infinities apart.
template <class Format>
struct code_table {
  static constexpr int fraction_bits = Format::mantissa_bits;
  std::array<double, 256> value{};  ///< NaN and infinities too
  std::array<std::int8_t, 256> significand{}, exponent{};
  std::array<bool, 256> finite{};

  code_table() {
    for (int code = 0; code < 256; ++code) {
      const auto at = static_cast<std::size_t>(code);
      const float x = Format::decode(static_cast<std::uint8_t>(code));
      value[at] = static_cast<double>(x);
      finite[at] = std::isfinite(x);
      const int field = code >> Format::mantissa_bits & ((1 << Format::exponent_bits) - 1);
      const int mantissa = code & ((1 << Format::mantissa_bits) - 1);
      const int magnitude = field == 0 ? mantissa : mantissa + (1 << Format::mantissa_bits);
      significand[at] = static_cast<std::int8_t>(code < 128 ? magnitude : -magnitude);
      exponent[at] = static_cast<std::int8_t>(std::max(field, 1) - Format::bias);
    }
  }
};
template <class Format>
inline const code_table<Format> codes{};

/// c + sum a_k b_k, exact but for the last rounding to FP32 (and one to FP64, where numbers differ by more than 2^53).
template <class A, class B>
double exact_products(const std::uint8_t* a, const std::uint8_t* b, int depth) {
  const code_table<A>& ta = codes<A>;
  const code_table<B>& tb = codes<B>;
  double sum = 0;
  for (int k = 0; k < depth; ++k) sum += ta.value[a[k]] * tb.value[b[k]];
  return sum;
}

namespace detail {

inline constexpr int lowest_exponent = -126;  ///< of a zero, as of the smallest normal FP32 number

/// A sum in units of 2^(exponent - 24).
struct partial_sum {
  std::int64_t units = 0;
  int exponent = lowest_exponent;
};

/// x 2^-shift, floored.
inline std::int64_t floored(std::int64_t x, int shift) { return x >> std::min(shift, 63); }

/// The products of every other k of sixteen, from `first` on.
template <class A, class B>
partial_sum parity_sum(const std::uint8_t* a, const std::uint8_t* b, int first) {
  const code_table<A>& ta = codes<A>;
  const code_table<B>& tb = codes<B>;
  constexpr int up = 24 - code_table<A>::fraction_bits - code_table<B>::fraction_bits;
  int product[8], exponent[8], largest = lowest_exponent;
  for (int n = 0; n < 8; ++n) {
    const int k = first + 2 * n;
    product[n] = ta.significand[a[k]] * tb.significand[b[k]];
    exponent[n] = product[n] == 0 ? lowest_exponent : ta.exponent[a[k]] + tb.exponent[b[k]];
    largest = std::max(largest, exponent[n]);
  }
  partial_sum sum{0, largest};
  for (int n = 0; n < 8; ++n) {
    const std::int64_t magnitude =
        floored(std::int64_t{product[n] < 0 ? -product[n] : product[n]} << up, largest - exponent[n]);
    sum.units += product[n] < 0 ? -magnitude : magnitude;
  }
  return sum;
}

}  // namespace detail

/// One group: sixteen products of finite numbers, added to c.
template <class A, class B>
float cdna3_group(const std::uint8_t* a, const std::uint8_t* b, float c) {
  using namespace detail;
  const partial_sum even = parity_sum<A, B>(a, b, 0), odd = parity_sum<A, B>(a, b, 1);
  const int products = std::max(even.exponent, odd.exponent);
  const std::int64_t sum = floored(even.units, products - even.exponent) + floored(odd.units, products - odd.exponent);

  int of_c = lowest_exponent;
  if (c != 0) of_c = std::max(std::ilogb(c), lowest_exponent);
  const int largest = std::max(products, of_c);
  constexpr int more = 31 - 24;
  const std::int64_t s = floored(sum << more, largest - products);
  std::int64_t rest = 0;
  if (of_c >= largest - 25)  // c is a whole number of 2^(of_c - 23)
    rest = floored(static_cast<std::int64_t>(std::ldexp(static_cast<double>(c), 23 - of_c)) * 2, largest - of_c);
  return static_cast<float>(std::ldexp(static_cast<double>(s + rest * (std::int64_t{1} << more)), largest - 31));
}

template <class A, class B>
float cdna3_sum(const std::uint8_t* a, const std::uint8_t* b, int depth, float c) {
  bool finite = std::isfinite(c);
  for (int k = 0; k < depth; ++k) finite = finite && codes<A>.finite[a[k]] && codes<B>.finite[b[k]];
  if (!finite) return static_cast<float>(exact_products<A, B>(a, b, depth) + static_cast<double>(c));
  for (int k = 0; k < depth; k += 16) c = cdna3_group<A, B>(a + k, b + k, c);
  return c;
}

template <class A, class B>
float ideal_sum(const std::uint8_t* a, const std::uint8_t* b, int depth, float c) {
  return static_cast<float>(exact_products<A, B>(a, b, depth) + static_cast<double>(c));
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
