// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a matrix product of one warp (mma.sync on FP8), from the operands' values to FP32 sums.
//
// `model` is an H200, where m16n8k32 on FP8 is two F16 products of 16 elements on top of each other (cuda/ptx/mma.hpp).
// Each is as f16_product says (MMA-Sim, arXiv 2511.10909, for F16 on Hopper; an H200's own results have the same bits:
// tests/unit/sim/golden.cpp).
#pragma once

#include <octavo/backends/sim/options.hpp>
#include <octavo/backends/sim/product.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// d plus 16 products of F16 numbers: all terms are cut toward zero `fraction` bits below the largest exponent, added exactly,
/// and the sum is cut to FP32. The exponent of a product is the sum of its factors': 1.5 x 1.5 has exponent 0.
inline float f16_product(const float (&a)[16], const float (&b)[16], float d, int fraction = 25) {
  constexpr int none = -10000;
  const auto exponent = [](double x) { return x == 0 ? none : std::ilogb(x); };
  if (!std::isfinite(d)) return std::bit_cast<float>(product_nan);
  int largest = exponent(d);
  for (int i = 0; i < 16; ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return std::bit_cast<float>(product_nan);
    if (a[i] != 0 && b[i] != 0) largest = std::max(largest, exponent(a[i]) + exponent(b[i]));
  }
  if (largest == none) return 0;
  const double unit = std::ldexp(1.0, largest - fraction);
  double sum = std::trunc(d / unit) * unit;
  for (int i = 0; i < 16; ++i) sum += std::trunc(static_cast<double>(a[i]) * b[i] / unit) * unit;
  const float nearest = static_cast<float>(sum);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}
/// The same of half of the 32 elements that mma.sync multiplies: of every word the lower two bytes (part 0) or the upper.
inline float half_product(const float* a, const float* b, int part, float d, int fraction = 25) {
  float left[16], right[16];
  for (int i = 0; i < 16; ++i) {
    const int k = i / 2 * 4 + 2 * part + i % 2;
    left[i] = a[k], right[i] = b[k];
  }
  return f16_product(left, right, d, fraction);
}

/// d + sum_k a[k] b[k] over 32 elements. NaN for a NaN in a factor.
inline float warp_product(const float* a, const float* b, float d, accumulation how, int fraction = 25) {
  constexpr int depth = 32;
  if (how == accumulation::ideal) {
    double sum = 0;  // exact: products of FP8 numbers
    for (int k = 0; k < depth; ++k) sum += static_cast<double>(a[k]) * b[k];
    if (std::isnan(sum) || std::isnan(d)) return std::bit_cast<float>(product_nan);
    return detail::add_once(sum, d);
  }
  return half_product(a, b, 1, half_product(a, b, 0, d, fraction), fraction);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
