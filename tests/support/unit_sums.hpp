// SPDX-License-Identifier: Apache-2.0
// Sums of products as the matrix units make them (numerics contract, "accumulators"), one element at a time and with
// nothing but doubles: written from the rules, and not with the simulator's arithmetic.
//
// An instruction takes 32 products and C. All are cut toward zero at a number of bits below the largest exponent, where
// a product has the sum of its factors' exponents, and added exactly; the sum is cut to what the unit keeps.
#pragma once

#include <octavo/backends/reference/quantise.hpp>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

namespace octavo_tests {

namespace math = octavo::backends::reference_math;

/// A unit, and over how many tokens its sums run in the schedules before they are added up in FP32 (0: to the end).
struct matrix_unit {
  int aligned_bits, kept_bits;  ///< below the leading one of the largest term; of a sum
  std::int64_t key_run, query_run;
  bool sums_weights;  ///< l is made by products with ones, where no scale is folded into the weights
};
inline constexpr matrix_unit hopper_unit{13, 13, 128, 64, true};
inline constexpr matrix_unit blackwell_unit{25, 23, 0, 0, false};

/// An FP8 element with its scale: the unit sees a subnormal one with the exponent of the smallest normal number.
struct scaled_element {
  static constexpr int none = INT_MIN / 4;  ///< exponent of a zero
  double value = 0;
  int exponent = none;

  /// of E4M3, with the scale 2^scale_exponent
  static scaled_element of(double value, int scale_exponent) {
    if (value == 0) return {};
    return {value, std::max(std::ilogb(value), 1 - octavo::e4m3::bias + scale_exponent)};
  }
};

/// Rows of elements along the contracted axis.
class contracted_rows {
 public:
  contracted_rows(std::int64_t rows, std::int64_t depth)
      : depth_(depth), elements_(static_cast<std::size_t>(rows * depth)) {}
  std::int64_t depth() const { return depth_; }
  scaled_element* row(std::int64_t i) { return elements_.data() + i * depth_; }
  const scaled_element* row(std::int64_t i) const { return elements_.data() + i * depth_; }

 private:
  std::int64_t depth_;
  std::vector<scaled_element> elements_;
};

/// x without what is below 2^least, toward zero.
inline double cut(double x, int least) { return std::ldexp(std::trunc(std::ldexp(x, -least)), least); }

/// C + up to 32 products.
inline double multiply_step(const matrix_unit& u, const scaled_element* a, const scaled_element* b, std::int64_t n,
                            double c) {
  constexpr int smallest = -126;  // exponent of subnormal FP32 numbers
  int largest = c == 0 ? scaled_element::none : std::max(std::ilogb(c), smallest);
  for (std::int64_t k = 0; k < n; ++k)
    if (a[k].value != 0 && b[k].value != 0) largest = std::max(largest, a[k].exponent + b[k].exponent);
  if (largest == scaled_element::none) return 0;
  const double up = math::power_of_two(u.aligned_bits - largest), down = math::power_of_two(largest - u.aligned_bits);
  double sum = std::trunc(c * up);
  for (std::int64_t k = 0; k < n; ++k) sum += std::trunc(a[k].value * b[k].value * up);
  sum *= down;
  return sum == 0 ? 0 : cut(sum, std::max(std::ilogb(sum), smallest) - u.kept_bits);
}

/// a . b over elements [0, n), 32 at a time; every `run` of them a sum of its own.
inline double multiply(const matrix_unit& u, const scaled_element* a, const scaled_element* b, std::int64_t n,
                       std::int64_t run) {
  double total = 0, c = 0;
  for (std::int64_t k = 0; k < n; k += 32) {
    if (run != 0 && k % run == 0) total += c, c = 0;
    c = multiply_step(u, a + k, b + k, std::min<std::int64_t>(32, n - k), c);
  }
  return total + c;
}

}  // namespace octavo_tests
