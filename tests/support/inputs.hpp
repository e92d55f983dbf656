// SPDX-License-Identifier: Apache-2.0
// The families of inputs that results are judged on. FP8 hides what it represents exactly, so nothing here is a small
// integer, and no scale is one: magnitudes differ from head to head and from block to block.
#pragma once

#include <cmath>
#include <random>

#include "support/test_case.hpp"

namespace octavo_tests {

enum class input_family {
  randn,
  outliers,             // a few channels thirty times as large
  key_bias_value_mode,  // q = 2 randn, k = randn + 5 b, v = randn + 3 w: what a stale delta cannot stand
  token_spread,         // token magnitudes spread over 2^+-4
};
inline constexpr input_family every_family[] = {input_family::randn, input_family::outliers,
                                                input_family::key_bias_value_mode, input_family::token_spread};

namespace inputs_detail {

class generator {
 public:
  generator(input_family family, unsigned seed) : family_(family), random_(seed) {}

  /// common: weight of one random vector that is added to every token. spread: whether token_spread applies.
  floats tensor(const tensor_shape& shape, float factor, float common, bool spread) {
    const floats direction = normal(shape.d);
    floats x = normal(shape.rows() * shape.d);
    for (std::int64_t row = 0; row < shape.rows(); ++row) {
      const std::int64_t head = row % shape.h, token = row / shape.h;
      float size = factor * magnitude(head, token / 32);
      if (spread && family_ == input_family::token_spread) size *= std::exp2(uniform_(random_));
      for (std::int64_t c = 0; c < shape.d; ++c) {
        float& value = x[static_cast<std::size_t>(row * shape.d + c)];
        if (family_ == input_family::outliers && c % 29 == 3) value *= 30;
        value = size * (value + common * direction[static_cast<std::size_t>(c)]);
      }
    }
    return x;
  }
  floats normal(std::int64_t count) {
    floats x(static_cast<std::size_t>(count));
    for (float& value : x) value = gauss_(random_);
    return x;
  }

 private:
  static float magnitude(std::int64_t head, std::int64_t block) {
    static constexpr float of_head[] = {1.07f, 0.61f, 1.43f, 0.83f}, of_block[] = {0.93f, 1.31f, 0.71f};
    return of_head[head % 4] * of_block[block % 3];
  }
  input_family family_;
  std::mt19937 random_;
  std::normal_distribution<float> gauss_;
  std::uniform_real_distribution<float> uniform_{-4, 4};
};

}  // namespace inputs_detail

/// The problem with data of a family. Offsets are those of packed documents.
inline test_case make_case(const octavo::problem& p, input_family family, unsigned seed, offsets cu_q = {},
                           offsets cu_kv = {}) {
  test_case c;
  c.p = p;
  c.cu_q = std::move(cu_q), c.cu_kv = std::move(cu_kv);
  inputs_detail::generator make(family, seed);
  const bool hard = family == input_family::key_bias_value_mode;
  // Outlier channels meet in q . k and would leave one key per row: the queries are scaled back to keep the others.
  const float q_factor = hard ? 2.0f : family == input_family::outliers ? 0.02f : 1.0f;
  c.q = make.tensor(c.q_side(p.d_qk), q_factor, 0, false);
  c.k = make.tensor(c.kv_side(p.d_qk), 1, hard ? 5.0f : 0, true);
  c.v = make.tensor(c.kv_side(p.d_v), 1, hard ? 3.0f : 0, true);
  c.dout = make.tensor(c.q_side(p.d_v), 0.37f, 0, true);
  if (p.sink) c.sink = make.normal(p.h_q);
  if (p.key_centring == octavo::key_centring::given) c.key_shift = make.normal(p.b * p.h_kv * p.d_qk);
  if (p.delta_halves) c.delta_shift = make.normal(c.statistics());
  return c;
}

}  // namespace octavo_tests
