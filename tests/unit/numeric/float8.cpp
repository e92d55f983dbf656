// SPDX-License-Identifier: Apache-2.0
// Properties that each FP8 type must have, whatever its table says: saturation, ties, subnormals, NaN, the sign of
// zero, monotonicity, and that the short cut `round` is the long way `nearest_even` and back.
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e4m3fnuz.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e5m2fnuz.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <type_traits>

namespace {

using octavo::e4m3;
using octavo::e4m3fnuz;
using octavo::e5m2;
using octavo::e5m2fnuz;
using octavo::overflow;
using octavo::detail::bit_cast;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits_of(float x) { return bit_cast<std::uint32_t>(x); }

// The next smaller and next larger value of a positive float.
float below(float x) { return std::nextafter(x, 0.0f); }
float above(float x) { return std::nextafter(x, infinity); }

template <class T>
float smallest() {
  return T::decode(1);
}

// Codes 0 .. max_code are the non-negative finite values in increasing order: the format's own number line.
template <class T>
float midpoint(int code) {
  return (T::decode(static_cast<std::uint8_t>(code)) + T::decode(static_cast<std::uint8_t>(code + 1))) / 2;
}

template <class T, overflow O>
std::uint32_t disagreements(std::uint32_t word) {
  const float x = bit_cast<float>(word);
  const float value = T::template round<O>(x);
  const float decoded = static_cast<float>(T::template nearest_even<O>(x));
  return bits_of(value) == bits_of(decoded) ? 0 : 1;
}

}  // namespace

// Constant expressions, and four types that do not convert into each other.
static_assert(e4m3::nearest_even(1.0f).bits == 0x38 && e5m2::nearest_even(1.0f).bits == 0x3c);
static_assert(e4m3fnuz::nearest_even(1.0f).bits == 0x40 && e5m2fnuz::nearest_even(1.0f).bits == 0x40);
static_assert(e4m3::round(0.3f) == 0.3125f && e4m3::decode(0x7e) == 448.0f && e4m3::from_bits(0x7f).is_nan());
static_assert(e4m3::nearest_even<overflow::non_finite>(500.0f).is_nan());
static_assert(std::is_trivially_copyable_v<e4m3> && std::is_standard_layout_v<e4m3> && sizeof(e4m3[3]) == 3);
static_assert(!std::is_convertible_v<e4m3, e4m3fnuz> && !std::is_constructible_v<e4m3fnuz, e4m3>);
static_assert(!std::is_convertible_v<e4m3, float> && std::is_constructible_v<float, e4m3>);
static_assert(!std::is_convertible_v<float, e4m3>);

TEST_CASE_TEMPLATE("the facts of a type agree with its codes", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  CHECK(T::decode(T::max_code) == T::max);
  CHECK(smallest<T>() == std::ldexp(1.0f, 1 - T::bias - T::mantissa_bits));
  CHECK(T::from_bits(T::nan_code).is_nan());
  int nans = 0, infinities = 0;
  for (int code = 0; code < 256; ++code) {
    const T value = T::from_bits(static_cast<std::uint8_t>(code));
    nans += value.is_nan();
    infinities += std::isinf(static_cast<float>(value));
    CHECK(value.is_nan() == std::isnan(static_cast<float>(value)));
  }
  CHECK(nans == (T::fnuz ? 1 : T::has_infinity ? 6 : 2));
  CHECK(infinities == (T::has_infinity ? 2 : 0));
}

TEST_CASE_TEMPLATE("a code survives the way through binary32", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  for (int code = 0; code < 256; ++code) {
    const auto bits = static_cast<std::uint8_t>(code);
    const float value = T::decode(bits);
    CAPTURE(code);
    CHECK(bits_of(T::template round<overflow::non_finite>(value)) == bits_of(value));
    if (!std::isnan(value)) CHECK(T::template nearest_even<overflow::non_finite>(value).bits == bits);
    if (std::isfinite(value)) CHECK(T::nearest_even(value).bits == bits);
  }
}

TEST_CASE_TEMPLATE("a tie goes to the even code, its neighbours to the nearer one", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  for (int code = 0; code < T::max_code; ++code) {
    const float tie = midpoint<T>(code);
    CAPTURE(code);
    CHECK(T::nearest_even(tie).bits == code + code % 2);
    CHECK(T::nearest_even(below(tie)).bits == code);
    CHECK(T::nearest_even(above(tie)).bits == code + 1);
    CHECK(static_cast<float>(T::nearest_even(-tie)) == -static_cast<float>(T::nearest_even(tie)));
  }
}

TEST_CASE_TEMPLATE("overflow saturates or leaves the finite values", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  // Halfway from max to where the next value would be.
  const float step = T::max - T::decode(T::max_code - 1);
  const float tie = T::max + step / 2;
  const bool tie_overflows = T::max_code % 2 == 1;
  for (float x : {T::max, above(T::max), below(tie), tie, above(tie), 2 * T::max, 1e30f, infinity}) {
    CAPTURE(x);
    CHECK(T::round(x) == T::max);
    CHECK(T::round(-x) == -T::max);
    CHECK(T::nearest_even(x).bits == T::max_code);
    const bool overflows = x > tie || (x == tie && tie_overflows);
    const float kept = T::template round<overflow::non_finite>(-x);
    if (!overflows) CHECK(kept == -T::max);
    if (overflows && T::has_infinity) CHECK(kept == -infinity);
    if (overflows && !T::has_infinity) CHECK(std::isnan(kept));
  }
}

TEST_CASE_TEMPLATE("NaN stays NaN, of either sign and any payload", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  for (std::uint32_t word : {bits_of(quiet_nan), 0xffc00000u, 0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    const float x = bit_cast<float>(word);
    CHECK(T::nearest_even(x).bits == T::nan_code);
    CHECK(T::template nearest_even<overflow::non_finite>(x).bits == T::nan_code);
    CHECK(bits_of(T::round(x)) == bits_of(quiet_nan));
  }
}

TEST_CASE_TEMPLATE("underflow and the sign of zero", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  const std::uint8_t negative_zero = T::fnuz ? 0x00 : 0x80;
  CHECK(T::nearest_even(0.0f).bits == 0);
  CHECK(T::nearest_even(-0.0f).bits == negative_zero);
  CHECK(T::nearest_even(smallest<T>() / 2).bits == 0);  // a tie, and zero is even
  CHECK(T::nearest_even(-smallest<T>() / 2).bits == negative_zero);
  CHECK(T::nearest_even(above(smallest<T>() / 2)).bits == 1);
  CHECK(T::nearest_even(-above(smallest<T>() / 2)).bits == 0x81);
  CHECK(T::nearest_even(-1e-45f).bits == negative_zero);
  CHECK(std::signbit(T::round(-0.0f)) == !T::fnuz);
  CHECK(std::signbit(T::round(-1e-30f)) == !T::fnuz);
}

TEST_CASE_TEMPLATE("rounding is monotone and odd", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  float previous = 0;
  for (std::uint32_t word = 0; word <= 0x7f800000u; word += 0x1357u) {
    const float value = T::round(bit_cast<float>(word));
    const bool holds = value >= previous && T::round(-bit_cast<float>(word)) == -value;
    if (!holds) FAIL_CHECK("not monotone or not odd at bits " << word);
    previous = value;
  }
  CHECK(previous == T::max);
}

TEST_CASE_TEMPLATE("round is nearest_even and back, bit for bit", T, e4m3, e5m2, e4m3fnuz, e5m2fnuz) {
  // Every sign, exponent and upper 7 mantissa bits, with lower halves at and beside the points where rounding turns.
  std::uint32_t wrong = 0;
  for (std::uint32_t upper = 0; upper <= 0xffff; ++upper) {
    for (std::uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xcafeu, 0xffffu}) {
      const std::uint32_t word = upper << 16 | lower;
      wrong += disagreements<T, overflow::saturate>(word) + disagreements<T, overflow::non_finite>(word);
    }
  }
  CHECK(wrong == 0);
}
