// SPDX-License-Identifier: Apache-2.0
// E5M2 as CDNA3 (MI300) computes with it: the bias is one higher than OCP's, so a byte means half as much, every code
// but one is finite, and there is no negative zero. scaling/fnuz.hpp moves payloads between the two.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float8.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {
struct e5m2fnuz_format {
  static constexpr int exponent_bits = 5;
  static constexpr int mantissa_bits = 2;
  static constexpr int bias = 16;
  static constexpr std::uint32_t max_code = 0x7f;
  static constexpr std::uint32_t nan_code = 0x80;
  static constexpr bool has_infinity = false;
  static constexpr bool fnuz = true;
};
}  // namespace detail

struct e5m2fnuz : detail::float8<e5m2fnuz, detail::e5m2fnuz_format> {
  static constexpr const char* name = "e5m2fnuz";
  static constexpr float max = 57344.0f;
};

static_assert(sizeof(e5m2fnuz) == 1 && e5m2fnuz::decode(e5m2fnuz::max_code) == e5m2fnuz::max);

OCTAVO_END_NAMESPACE
