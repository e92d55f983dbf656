// SPDX-License-Identifier: Apache-2.0
// OCP E5M2: the upper byte of binary16, with its infinities and NaNs. An option for gradients, where range may matter
// more than precision.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/float8.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {
struct e5m2_format {
  static constexpr int exponent_bits = 5;
  static constexpr int mantissa_bits = 2;
  static constexpr int bias = 15;
  static constexpr std::uint32_t max_code = 0x7b;
  static constexpr std::uint32_t nan_code = 0x7e;
  static constexpr bool has_infinity = true;
  static constexpr bool fnuz = false;
};
}  // namespace detail

struct e5m2 : detail::float8<e5m2, detail::e5m2_format> {
  static constexpr const char* name = "e5m2";
  static constexpr float max = 57344.0f;
};

static_assert(sizeof(e5m2) == 1 && e5m2::decode(e5m2::max_code) == e5m2::max);

OCTAVO_END_NAMESPACE
