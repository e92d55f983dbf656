// SPDX-License-Identifier: Apache-2.0
// OCP E4M3 ("e4m3fn"): three mantissa bits and a range to 448, bought by having no infinity and one NaN per sign. The
// element type of every FP8 operand by default.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float8.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {
struct e4m3_format {
  static constexpr int exponent_bits = 4;
  static constexpr int mantissa_bits = 3;
  static constexpr int bias = 7;
  static constexpr std::uint32_t max_code = 0x7e;
  static constexpr std::uint32_t nan_code = 0x7f;
  static constexpr bool has_infinity = false;
  static constexpr bool fnuz = false;
};
}  // namespace detail

struct e4m3 : detail::float8<e4m3, detail::e4m3_format> {
  static constexpr const char* name = "e4m3";
  static constexpr float max = 448.0f;
};

static_assert(sizeof(e4m3) == 1 && e4m3::decode(e4m3::max_code) == e4m3::max);

OCTAVO_END_NAMESPACE
