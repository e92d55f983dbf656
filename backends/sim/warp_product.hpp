// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a matrix product of one warp (mma.sync on FP8), from the operands' values to FP32 sums.
//
// `model` is an H200, where m16n8k32 on FP8 is two F16 products of 16 elements on top of each other (cuda/ptx/mma.hpp).
// In each the unit aligns all terms, D among them, to the largest exponent, cuts them 25 bits below it, sums exactly and
// cuts to FP32 (MMA-Sim, arXiv 2511.10909, for F16 on Hopper).
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

/// A sum of n terms that are exact in double, each cut toward zero `bits` below the exponent of the largest; cut to FP32.
inline float aligned_sum(const double* terms, int n, int bits) {
  double largest = 0;
  for (int i = 0; i < n; ++i) {
    if (!std::isfinite(terms[i])) return std::bit_cast<float>(product_nan);
    largest = std::max(largest, std::fabs(terms[i]));
  }
  if (largest == 0) return 0;
  const double unit = std::ldexp(1.0, std::ilogb(largest) - bits);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += std::trunc(terms[i] / unit) * unit;
  const float nearest = static_cast<float>(sum);
  return std::fabs(static_cast<double>(nearest)) > std::fabs(sum) ? std::nextafter(nearest, 0.0f) : nearest;
}

/// d + sum_k a[k] b[k] over 32 elements. NaN for a NaN in a factor.
inline float warp_product(const float* a, const float* b, float d, accumulation how) {
  constexpr int depth = 32, half = 16;
  if (how == accumulation::ideal) {
    double sum = 0;  // exact: products of FP8 numbers
    for (int k = 0; k < depth; ++k) sum += static_cast<double>(a[k]) * b[k];
    if (std::isnan(sum) || std::isnan(d)) return std::bit_cast<float>(product_nan);
    return detail::add_once(sum, d);
  }
  constexpr int fraction = 25;
  double terms[half + 1];
  for (int part = 0; part < 2; ++part) {  // of every word the lower two bytes, then the upper two
    for (int i = 0; i < half; ++i) {
      const int k = i / 2 * 4 + 2 * part + i % 2;
      terms[i] = static_cast<double>(a[k]) * b[k];
    }
    terms[half] = d;
    d = aligned_sum(terms, half + 1, fraction);
  }
  return d;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
