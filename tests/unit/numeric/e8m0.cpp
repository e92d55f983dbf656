// SPDX-License-Identifier: Apache-2.0
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e8m0.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace {

using octavo::e4m3;
using octavo::e5m2;
using octavo::e8m0;
using octavo::exp2i;
using octavo::detail::bit_cast;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float float_max = std::numeric_limits<float>::max();
constexpr float float_min = std::numeric_limits<float>::denorm_min();

}  // namespace

static_assert(static_cast<float>(e8m0::round_up(0.3f)) == 0.5f);
static_assert(e8m0::for_amax(448.0f, e4m3::max).bits == 127 && e8m0::for_amax(0.0f, e4m3::max).bits == 127);
static_assert(exp2i(0) == 1.0f && exp2i(-1) == 0.5f);

TEST_CASE("exp2i is exact over the whole range of binary32") {
  for (int e = -149; e <= 127; ++e) CHECK(exp2i(e) == std::ldexp(1.0f, e));
  CHECK(exp2i(-150) == 0.0f);
  CHECK(exp2i(-100000) == 0.0f);
  CHECK(exp2i(128) == infinity);
  CHECK(exp2i(100000) == infinity);
}

TEST_CASE("an E8M0 code is a power of two, its reciprocal another") {
  for (int code = 0; code < 255; ++code) {
    const e8m0 scale = e8m0::from_bits(static_cast<std::uint8_t>(code));
    CHECK(static_cast<float>(scale) == std::ldexp(1.0f, code - 127));
    CHECK(scale.exponent() == code - 127);
    CHECK(e8m0::from_exponent(scale.exponent()).bits == code);
    CHECK(static_cast<float>(scale) * scale.reciprocal() == 1.0f);
    CHECK_FALSE(scale.is_nan());
  }
  const e8m0 none = e8m0::from_bits(0xff);
  CHECK(none.is_nan());
  CHECK(std::isnan(static_cast<float>(none)));
  CHECK(std::isnan(none.reciprocal()));
  CHECK(static_cast<float>(e8m0::from_bits(0)) == e8m0::min);
  CHECK(static_cast<float>(e8m0::from_bits(254)) == e8m0::max);
  CHECK(e8m0::from_exponent(-128).bits == 0);
  CHECK(e8m0::from_exponent(128).is_nan());
}

TEST_CASE("round_up never goes below, and stays at a power of two") {
  for (int e = -127; e <= 127; ++e) {
    const float power = std::ldexp(1.0f, e);
    CAPTURE(e);
    CHECK(e8m0::round_up(power).exponent() == e);
    CHECK(e8m0::round_up(std::nextafter(power, 0.0f)).exponent() == e);
    CHECK(e8m0::round_up(std::nextafter(power, infinity)).bits == static_cast<std::uint8_t>(e + 128));
  }
  CHECK(e8m0::round_up(0.0f).bits == 0);
  CHECK(e8m0::round_up(-0.0f).bits == 0);
  CHECK(e8m0::round_up(float_min).bits == 0);
  CHECK(e8m0::round_up(-3.0f).bits == 0);
  CHECK(e8m0::round_up(-infinity).bits == 0);
  CHECK(e8m0::round_up(float_max).is_nan());
  CHECK(e8m0::round_up(infinity).is_nan());
  CHECK(e8m0::round_up(quiet_nan).is_nan());
  CHECK(e8m0::round_up(-quiet_nan).is_nan());
}

TEST_CASE("for_amax is the smallest power of two under which nothing saturates") {
  for (float format_max : {e4m3::max, e5m2::max, 224.0f, 1.0f}) {
    for (int e = -126; e <= 100; ++e) {
      const float edge = std::ldexp(format_max, e);  // the quotient is exactly 2^e here
      if (!std::isfinite(edge)) continue;
      CAPTURE(format_max);
      CAPTURE(e);
      CHECK(e8m0::for_amax(edge, format_max).exponent() == e);
      CHECK(e8m0::for_amax(std::nextafter(edge, 0.0f), format_max).exponent() == e);
      CHECK(e8m0::for_amax(std::nextafter(edge, infinity), format_max).exponent() == e + 1);
    }
  }
}

TEST_CASE("for_amax agrees with double precision everywhere") {
  // binary32 / 448 in binary64 is rounded, but never onto or across a power of two that it is not equal to.
  for (std::uint32_t word = 1; word < 0x7f800000u; word += 0x2345u) {
    const float amax = bit_cast<float>(word);
    int expected = 0;
    const double mantissa = std::frexp(static_cast<double>(amax) / 448.0, &expected);
    if (mantissa == 0.5) --expected;
    if (expected < -127) expected = -127;
    if (e8m0::for_amax(amax, 448.0f).exponent() != expected) FAIL_CHECK("wrong exponent for amax of bits " << word);
  }
}

TEST_CASE("for_amax at the ends") {
  CHECK(static_cast<float>(e8m0::for_amax(0.0f, e4m3::max)) == 1.0f);
  CHECK(static_cast<float>(e8m0::for_amax(-0.0f, e4m3::max)) == 1.0f);
  CHECK(e8m0::for_amax(float_min, e4m3::max).bits == 0);
  CHECK(e8m0::for_amax(float_max, e4m3::max).exponent() == 120);
  CHECK(e8m0::for_amax(-448.0f, e4m3::max).exponent() == 0);
  CHECK(e8m0::for_amax(infinity, e4m3::max).is_nan());
  CHECK(e8m0::for_amax(-infinity, e4m3::max).is_nan());
  CHECK(e8m0::for_amax(quiet_nan, e4m3::max).is_nan());
  CHECK(e8m0::for_amax(float_max, 0.5f).is_nan());
}
