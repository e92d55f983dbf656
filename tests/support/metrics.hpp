// SPDX-License-Identifier: Apache-2.0
// The distances by which results are judged. NaN anywhere makes them infinite: it must never pass as small.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

namespace octavo_tests {

inline constexpr double infinite = std::numeric_limits<double>::infinity();

inline double norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += double{value} * value;
  return std::isnan(sum) ? infinite : std::sqrt(sum);
}

/// |x - y| in the L2 norm.
inline double distance(std::span<const float> x, std::span<const float> y) {
  if (x.size() != y.size()) return infinite;
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
  return std::isnan(sum) ? infinite : std::sqrt(sum);
}

/// |x - truth| / |truth|; against a truth of zero 0 if x is zero too, else infinite.
inline double relative_error(std::span<const float> x, std::span<const float> truth) {
  const double error = distance(x, truth);
  return error == 0 ? 0 : error / norm(truth);
}

/// The largest |x_i - y_i|; infinities must stand at the same places.
inline double largest_difference(std::span<const float> x, std::span<const float> y) {
  if (x.size() != y.size()) return infinite;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    const double difference = std::fabs(double{x[i]} - y[i]);
    if (!(difference <= largest)) largest = std::isnan(difference) ? infinite : difference;
  }
  return largest;
}

/// sum_i |sum_j dS_ij| / sum_ij |dS_ij|.
inline double row_sum_ratio(std::span<const float> row_sum, std::span<const float> l1) {
  double sums = 0, magnitudes = 0;
  for (const float x : row_sum) sums += std::fabs(x);
  for (const float x : l1) magnitudes += x;
  if (std::isnan(sums) || std::isnan(magnitudes)) return infinite;
  return sums == 0 ? 0 : sums / magnitudes;
}

}  // namespace octavo_tests
