// SPDX-License-Identifier: Apache-2.0
// How far one result is from another.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace cli {

/// |a - b| / |b| in the 2-norm; 0 where both are zero, infinity where only b is.
inline double relative_l2(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double e = double{a[i]} - double{b[i]};
    difference += e * e;
    norm += double{b[i]} * double{b[i]};
  }
  if (difference == 0) return 0;
  return norm == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(difference / norm);
}

/// The largest |a - b|; equal infinities (rows without keys) differ by 0, and NaN wins over everything.
inline double max_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double e = std::fabs(double{a[i]} - double{b[i]});
    if (!(e <= largest)) largest = e;
    if (std::isnan(largest)) break;
  }
  return largest;
}

/// sum_i |row sum_i| / sum_i l1_i: what is left of the zero row sum of dS.
inline double row_sum_ratio(const std::vector<float>& row_sum, const std::vector<float>& l1) {
  double sums = 0, norms = 0;
  for (std::size_t i = 0; i < l1.size(); ++i) {
    sums += std::fabs(double{row_sum[i]});
    norms += double{l1[i]};
  }
  return sums == 0 ? 0 : sums / norms;
}

}  // namespace cli
