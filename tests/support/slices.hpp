// SPDX-License-Identifier: Apache-2.0
// Parts of tensors [b, s, h, d] by their tokens, and the comparisons of properties that hold to the last bit. Row
// statistics [b, h, s] are tensors of b * h batches with one head and one channel.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "support/test_case.hpp"

namespace octavo_tests {

inline tensor_shape statistics_shape(const test_case& c) {
  return c.p.packed ? tensor_shape{c.p.h_q, c.p.total_q, 1, 1} : tensor_shape{c.p.b * c.p.h_q, c.p.s_q, 1, 1};
}

/// Calls f(values, token) with the [h, d] values of every token in [first, last) of every batch.
template <class Floats, class F>
void for_tokens(Floats& x, const tensor_shape& shape, std::int64_t first, std::int64_t last, const F& f) {
  const std::int64_t size = shape.h * shape.d;
  for (std::int64_t b = 0; b < shape.b; ++b)
    for (std::int64_t token = first; token < last; ++token)
      f(std::span(x).subspan(static_cast<std::size_t>((b * shape.s + token) * size), static_cast<std::size_t>(size)),
        token);
}

/// The tokens [first, last) of every batch, as a tensor of their own.
inline floats tokens(const floats& x, const tensor_shape& shape, std::int64_t first, std::int64_t last) {
  floats part;
  for_tokens(x, shape, first, last,
             [&](auto values, std::int64_t) { part.insert(part.end(), values.begin(), values.end()); });
  return part;
}

/// Adds a tensor of the tokens [first, last) to those of x.
inline void add_tokens(floats& x, const tensor_shape& shape, std::int64_t first, std::int64_t last,
                       const floats& part) {
  std::size_t next = 0;
  for_tokens(x, shape, first, last, [&](auto values, std::int64_t) {
    for (float& value : values) value += part[next++];
  });
}

/// x_c + factor * direction_c for every token and head.
inline void add_direction(floats& x, const floats& direction, float factor) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += factor * direction[i % direction.size()];
}
inline void multiply(floats& x, float factor) {
  for (float& value : x) value *= factor;
}

/// The same bits everywhere; NaNs may differ in theirs.
inline bool identical(std::span<const float> x, std::span<const float> y) {
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
  });
}
/// x is factor * y, for factors that are powers of two.
inline bool is_multiple(floats y, float factor, std::span<const float> x) {
  multiply(y, factor);
  return identical(x, y);
}
inline bool all_finite(std::span<const float> x) {
  return std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); });
}
inline bool all_zero(std::span<const float> x) {
  return std::all_of(x.begin(), x.end(), [](float value) { return value == 0; });
}

}  // namespace octavo_tests
