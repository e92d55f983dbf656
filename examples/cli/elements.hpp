// SPDX-License-Identifier: Apache-2.0
// Single elements of the 32- and 16-bit types in untyped memory, as float.
#pragma once

#include <octavo/numeric/dtype.hpp>

#include <cstdint>

namespace cli {

inline float element_at(const void* data, octavo::dtype type, std::int64_t i) {
  switch (type) {
    case octavo::dtype::f16:
      return static_cast<float>(static_cast<const octavo::fp16*>(data)[i]);
    case octavo::dtype::bf16:
      return static_cast<float>(static_cast<const octavo::bf16*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

/// Rounds x to nearest even.
inline void set_element(void* data, octavo::dtype type, std::int64_t i, float x) {
  switch (type) {
    case octavo::dtype::f16:
      static_cast<octavo::fp16*>(data)[i] = octavo::fp16::nearest_even(x);
      break;
    case octavo::dtype::bf16:
      static_cast<octavo::bf16*>(data)[i] = octavo::bf16::nearest_even(x);
      break;
    default:
      static_cast<float*>(data)[i] = x;
  }
}

}  // namespace cli
