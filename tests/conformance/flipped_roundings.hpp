// SPDX-License-Identifier: Apache-2.0
// Whether two O are one and the same, rounded to a type of 16 bits, but for elements that stood so near a tie that they
// went to either side. What decides of such an element is the last digits of FP32, or a weight that M lets underflow
// where it is the final one, and not yet where M rises step by step.
#pragma once

#include <octavo/tensor/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "support/tensor_memory.hpp"

namespace octavo_tests::flipped_roundings {

/// Of elements may be on the other side: one in so many. Before they were rounded, the two O then differ by this part
/// of a step in the mean, 2^-16 of the elements in BF16. (70 x 64, d 96, in steps of 32 keys: 1 in 1,100.)
inline constexpr std::size_t one_in = 256;

/// The distance of T's numbers at x.
inline float step(float x, octavo::dtype type) {
  const int digits = type == octavo::dtype::bf16 ? 8 : type == octavo::dtype::f16 ? 11 : 24;
  return x == 0 ? 0 : std::ldexp(1.0f, std::ilogb(x) - (digits - 1));
}

/// x, want: rows of d elements of type T. False for a T of f32, which has no ties to speak of.
inline bool all(const floats& x, const floats& want, octavo::dtype type, std::int64_t d) {
  if (type == octavo::dtype::f32 || x.size() != want.size()) return false;
  std::size_t flipped = 0;
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(d)) {
    const auto first = want.begin() + static_cast<std::ptrdiff_t>(row);
    float largest = 0;
    std::for_each(first, first + d, [&](float value) { largest = std::max(largest, std::fabs(value)); });
    for (std::size_t i = row; i < row + static_cast<std::size_t>(d); ++i) {
      if (x[i] == want[i]) continue;
      // Where channels cancel, a step is less than what the row's weights leave: each that underflows up to 2^-17 of V.
      const float allowed = std::max(step(std::max(std::fabs(x[i]), std::fabs(want[i])), type), 0x1p-14f * largest);
      if (!(std::fabs(x[i] - want[i]) <= allowed)) return false;
      ++flipped;
    }
  }
  return flipped <= 1 + x.size() / one_in;
}

}  // namespace octavo_tests::flipped_roundings
