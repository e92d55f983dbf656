// SPDX-License-Identifier: Apache-2.0
// A matrix of doubles, the two products that everything is made of, and the way in and out of tensors.
#pragma once

#include <octavo/backends/reference/format.hpp>
#include <octavo/backends/reference/sequence.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

class matrix {
 public:
  matrix() = default;
  matrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), data_(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols)) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  double* row(std::int64_t i) { return data_.data() + i * cols_; }
  const double* row(std::int64_t i) const { return data_.data() + i * cols_; }
  double& operator()(std::int64_t i, std::int64_t j) { return row(i)[j]; }
  double operator()(std::int64_t i, std::int64_t j) const { return row(i)[j]; }

 private:
  std::int64_t rows_ = 0, cols_ = 0;
  std::vector<double> data_;
};

/// a . b, in four partial sums: always the same four, so that S has the same bits in both passes.
inline double dot(const double* a, const double* b, std::int64_t n) {
  double sum[4] = {};
  std::int64_t c = 0;
  for (; c + 4 <= n; c += 4)
    for (int lane = 0; lane < 4; ++lane) sum[lane] += a[c + lane] * b[c + lane];
  for (; c < n; ++c) sum[0] += a[c] * b[c];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// y += weight * x. A weight of zero carries nothing, not even a NaN: masked and vanished pairs have no say.
inline void add_weighted(double* y, double weight, const double* x, std::int64_t n) {
  if (weight == 0) return;
  for (std::int64_t c = 0; c < n; ++c) y[c] += weight * x[c];
}

/// One head's rows of a tensor. An infinity is read as NaN, so that every recipe (and R64) treats non-finite inputs the
/// same way: NaN in what they reach.
inline matrix load(const const_tensor& t, const head_rows& at, std::int64_t d) {
  matrix x(at.rows, d);
  for (std::int64_t i = 0; i < at.rows; ++i)
    for (std::int64_t c = 0; c < d; ++c) {
      const double value = load_element(t.data, t.type, at.origin(t) + i * t.stride_s + c);
      x(i, c) = std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN();
    }
  return x;
}

/// Writes one head's rows, rounded to the tensor's type. An absent tensor is skipped.
inline void store(const tensor& t, const head_rows& at, const matrix& x) {
  if (!t) return;
  for (std::int64_t i = 0; i < x.rows(); ++i)
    for (std::int64_t c = 0; c < x.cols(); ++c)
      store_element(t.data, t.type, at.origin(t) + i * t.stride_s + c, x(i, c));
}

/// One head's part of the statistics [b, h, s]; nothing happens where the caller gave no array.
class statistics {
 public:
  statistics(float* data, const head_rows& at) : data_(data ? data + at.statistics() : nullptr) {}
  void set(std::int64_t i, double x) const {
    if (data_) data_[i] = static_cast<float>(x);
  }
  void fill(std::int64_t rows, double x) const {
    for (std::int64_t i = 0; i < rows; ++i) set(i, x);
  }

 private:
  float* data_;
};

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
