// SPDX-License-Identifier: Apache-2.0
// E4M3 as CDNA3 (MI300) computes with it: the bias is one higher than OCP's, so a byte means half as much, every code
// but one is finite, and there is no negative zero. scaling/fnuz.hpp moves payloads between the two.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float8.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {
struct e4m3fnuz_format {
  static constexpr int exponent_bits = 4;
  static constexpr int mantissa_bits = 3;
  static constexpr int bias = 8;
  static constexpr std::uint32_t max_code = 0x7f;
  static constexpr std::uint32_t nan_code = 0x80;
  static constexpr bool has_infinity = false;
  static constexpr bool fnuz = true;
};
}  // namespace detail

struct e4m3fnuz : detail::float8<e4m3fnuz, detail::e4m3fnuz_format> {
  static constexpr const char* name = "e4m3fnuz";
  static constexpr float max = 240.0f;
};

static_assert(sizeof(e4m3fnuz) == 1 && e4m3fnuz::decode(e4m3fnuz::max_code) == e4m3fnuz::max);

OCTAVO_END_NAMESPACE
