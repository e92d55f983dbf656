// SPDX-License-Identifier: Apache-2.0
// bf16 and fp16: all 65536 codes there and back, ties, ends.
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/fp16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

namespace {

using octavo::bf16;
using octavo::fp16;
using octavo::detail::bit_cast;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float x) { return bit_cast<std::uint32_t>(x); }

}  // namespace

static_assert(bf16::nearest_even(1.0f).bits == 0x3f80 && fp16::nearest_even(1.0f).bits == 0x3c00);
static_assert(bf16::round(1.00390625f) == 1.0f);  // 1 + 2^-8, a tie
static_assert(fp16::round(65519.0f) == fp16::max && fp16::round(65520.0f) == infinity);
static_assert(fp16::decode(0x0001) == 0x1p-24f && fp16::decode(0x0400) == 0x1p-14f);

TEST_CASE_TEMPLATE("a 16-bit code survives the way through binary32", T, bf16, fp16) {
  int nans = 0, wrong = 0;
  for (std::uint32_t code = 0; code <= 0xffff; ++code) {
    const T value = T::from_bits(static_cast<std::uint16_t>(code));
    const float x = static_cast<float>(value);
    if (value.is_nan() != std::isnan(x)) ++wrong;
    if (value.is_nan()) {
      ++nans;
      if (T::nearest_even(x).bits != T::nan_code || !std::isnan(T::round(x))) ++wrong;
    } else if (T::nearest_even(x).bits != code || bits_of(T::round(x)) != bits_of(x)) {
      ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(nans == 2 * ((1 << T::mantissa_bits) - 1));
}

TEST_CASE_TEMPLATE("16-bit ties go to the even code, their neighbours to the nearer one", T, bf16, fp16) {
  int wrong = 0;
  for (int code = 0; code < T::max_code; ++code) {
    const double lower = static_cast<double>(T::decode(static_cast<std::uint16_t>(code)));
    const double upper = static_cast<double>(T::decode(static_cast<std::uint16_t>(code + 1)));
    const float tie = static_cast<float>((lower + upper) / 2);
    wrong += T::nearest_even(tie).bits != code + code % 2;
    wrong += T::nearest_even(-tie).bits != (0x8000 | (code + code % 2));
    wrong += T::nearest_even(std::nextafter(tie, 0.0f)).bits != code;
    wrong += T::nearest_even(std::nextafter(tie, infinity)).bits != code + 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("16-bit overflow is infinity, NaN is NaN, zero keeps its sign", T, bf16, fp16) {
  const float step = T::max - T::decode(T::max_code - 1);
  const float tie = T::max + step / 2;  // max_code is odd: the tie overflows
  CHECK(T::round(std::nextafter(tie, 0.0f)) == T::max);
  CHECK(T::round(tie) == infinity);
  CHECK(T::round(-tie) == -infinity);
  CHECK(T::round(infinity) == infinity);
  CHECK(T::round(std::numeric_limits<float>::max()) == infinity);
  for (std::uint32_t word : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
    CHECK(T::nearest_even(bit_cast<float>(word)).bits == T::nan_code);
    CHECK(bits_of(T::round(bit_cast<float>(word))) == 0x7fc00000u);
  }
  CHECK(T::nearest_even(-0.0f).bits == 0x8000);
  CHECK(std::signbit(T::round(-1e-45f)));
}

TEST_CASE_TEMPLATE("16-bit round is nearest_even and back, bit for bit", T, bf16, fp16) {
  std::uint32_t wrong = 0;
  for (std::uint32_t word = 0; word < 0xffff0000u; word += 0x3fffu) {
    const float x = bit_cast<float>(word);
    wrong += bits_of(T::round(x)) != bits_of(static_cast<float>(T::nearest_even(x)));
  }
  CHECK(wrong == 0);
}
