// SPDX-License-Identifier: Apache-2.0
// CDNA3's sums against the rules as their source states them, and its FP8 bytes against those of scaling/fnuz.hpp.
#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/sim/amdgcn/sums.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "unit/hip/support.hpp"

namespace {

using namespace hip_test;
using namespace octavo;
using machine = cdna3::machine;

/// Significand in [1, 2) (below, for a subnormal number) and exponent of a number of format F or float.
struct parts {
  double significand;
  int exponent;
};
parts parts_of(double x, int lowest) {
  if (x == 0) return {0, -126};
  const int exponent = std::max(std::ilogb(x), lowest);
  return {std::ldexp(x, -exponent), exponent};
}
double cut(double x, int bits) { return std::ldexp(std::trunc(std::ldexp(x, bits)), -bits); }
double floor_at(double x, int bits) { return std::ldexp(std::floor(std::ldexp(x, bits)), -bits); }

/// MMA-Sim's rules for CDNA3's FP8 instructions in floating point, number by number.
template <class A, class B>
float by_the_rules(const std::uint8_t* a, const std::uint8_t* b, float c) {
  double sum[2];
  int exponent[2];
  for (int parity = 0; parity < 2; ++parity) {
    parts p[8];
    int largest = -126;
    for (int n = 0; n < 8; ++n) {
      const parts x = parts_of(A::decode(a[2 * n + parity]), 1 - A::bias),
                  y = parts_of(B::decode(b[2 * n + parity]), 1 - B::bias);
      p[n] = {x.significand * y.significand, x.exponent + y.exponent};
      if (p[n].significand != 0) largest = std::max(largest, p[n].exponent);
    }
    sum[parity] = 0;
    for (const parts& x : p)
      if (x.significand != 0) sum[parity] += cut(std::ldexp(x.significand, x.exponent - largest), 24);
    exponent[parity] = largest;
  }
  const int products = std::max(exponent[0], exponent[1]);
  const double s = floor_at(std::ldexp(sum[0], exponent[0] - products), 24) +
                   floor_at(std::ldexp(sum[1], exponent[1] - products), 24);
  const parts of_c = parts_of(static_cast<double>(c), -126);
  const int largest = std::max(products, of_c.exponent);
  const double kept =
      of_c.exponent >= largest - 25 ? floor_at(std::ldexp(of_c.significand, of_c.exponent - largest), 24) : 0;
  return static_cast<float>(std::ldexp(floor_at(std::ldexp(s, products - largest), 31) + kept, largest));
}

template <class A, class B>
int sums_that_differ(unsigned seed) {
  std::mt19937 random(seed);
  int wrong = 0;
  for (int n = 0; n < 20000; ++n) {
    std::uint8_t a[16], b[16];
    for (int k = 0; k < 16; ++k) {
      a[k] = static_cast<std::uint8_t>(random());
      b[k] = static_cast<std::uint8_t>(random());
      if (a[k] == 0x80) a[k] = 0;
      if (b[k] == 0x80 || n % 3 == 0) b[k] &= 0x3f;  // a third without large numbers or signs
    }
    float c = std::ldexp(static_cast<float>(static_cast<int>(random())), static_cast<int>(random() % 60) - 50);
    if (n % 7 == 0) c = 0;
    const float got = sim::cdna3_sum<A, B>(a, b, 16, c), rules = by_the_rules<A, B>(a, b, c);
    wrong += std::bit_cast<std::uint32_t>(got) != std::bit_cast<std::uint32_t>(rules);
  }
  return wrong;
}

template <class E>
int bytes_that_differ() {
  int wrong = 0;
  std::mt19937 random(5);
  // Magnitudes up to what still rounds to the largest number of E.
  constexpr float largest = E::max * 1.03f;
  const auto expect = [&](float x) {
    if (std::fabs(x) > largest) return;
    const std::uint32_t got = machine::pack<E>(x, 1, -x, 0), one = ocp_to_fnuz<E>(E::nearest_even(1.0f).bits);
    const std::uint32_t of_x = ocp_to_fnuz<E>(E::nearest_even(x).bits),
                        of_minus = ocp_to_fnuz<E>(E::nearest_even(-x).bits);
    wrong += got != (of_x | one << 8 | of_minus << 16);
  };
  for (const float x : {0.0f, -0.0f, E::max, largest, std::numeric_limits<float>::quiet_NaN(),
                        std::numeric_limits<float>::min(), 1e-30f})
    expect(x);
  for (int n = 0; n < 50000; ++n) expect(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  for (int n = 0; n < 50000; ++n)
    expect(std::ldexp(static_cast<float>(random() % 4096), static_cast<int>(random() % 32) - 24));
  for (int code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const std::uint32_t four =
        machine::operand_bytes<E>(static_cast<std::uint32_t>(code) | 0x3f00 | 0x810000 | 0x7f000000);
    wrong += (four & 0xff) != ocp_to_fnuz<E>(byte) || (four >> 8 & 0xff) != 0x3f || (four >> 16 & 0xff) != 0x81 ||
             four >> 24 != ocp_to_fnuz<E>(0x7f);
    float x[4];
    machine::unpack<E>(four, x);
    const float expected = E::decode(byte);
    wrong += !(x[0] == expected || (std::isnan(x[0]) && !std::isfinite(expected)));
    wrong += machine::is_weight(four & 0xff) != !(expected == 0);
  }
  return wrong;
}

}  // namespace

TEST_CASE("hip: CDNA3 adds FP8 products by the published rules") {
  CHECK(sums_that_differ<e4m3fnuz, e4m3fnuz>(1) == 0);
  CHECK(sums_that_differ<e5m2fnuz, e4m3fnuz>(2) == 0);
  CHECK(sums_that_differ<e4m3fnuz, e5m2fnuz>(3) == 0);
  CHECK(sums_that_differ<e5m2fnuz, e5m2fnuz>(4) == 0);
}

TEST_CASE("hip: CDNA3's sums lose what they are said to lose") {
  const std::uint8_t one = e4m3fnuz::nearest_even(1.0f).bits, least = 0x01, least_negative = 0x81;  // 2^-10
  std::uint8_t a[16] = {}, b[16] = {};
  // 2^-20 beside 2^24: floored away, and downwards if it is negative, where an exact sum would round to 2^24.
  a[0] = least, b[0] = least;
  CHECK(sim::cdna3_sum<e4m3fnuz, e4m3fnuz>(a, b, 16, 0x1p24f) == 0x1p24f);
  a[1] = b[1] = one;  // a half of c's last place: exact ties go to even ...
  CHECK(sim::ideal_sum<e4m3fnuz, e4m3fnuz>(a, b, 16, 0x1p24f) == 0x1p24f + 2);
  a[0] = least_negative;
  CHECK(sim::ideal_sum<e4m3fnuz, e4m3fnuz>(a, b, 16, 0x1p24f) == 0x1p24f);
  // ... and NaN, of which FNUZ has one, spreads.
  a[3] = e4m3fnuz::nan_code;
  CHECK(std::isnan(sim::cdna3_sum<e4m3fnuz, e4m3fnuz>(a, b, 16, 1.0f)));
  CHECK(std::isnan(sim::ideal_sum<e4m3fnuz, e4m3fnuz>(a, b, 16, 1.0f)));
}

TEST_CASE("hip: the instruction uses the model that the launch asks for") {
  using atom = machine::atom<e4m3, e4m3>;
  const std::uint32_t one = e4m3fnuz::nearest_even(1.0f).bits;
  for (const sim::accumulation how : {sim::accumulation::ideal, sim::accumulation::model}) {
    float first = 0;
    in_wave(
        [&](int lane) {
          // k 0 to 3 of every row: 1, and beside it -2^-20 at even k.
          std::uint32_t l[4] = {lane < 32 ? one << 8 | 0x81u : 0, 0, 0, 0},
                        r[4] = {lane < 32 ? one << 8 | 1u : 0, 0, 0, 0};
          float d[16];
          for (float& x : d) x = 0x1.000002p24f;
          atom::mma(d, l, r);
          if (lane == 0) first = d[0];
        },
        how);
    CHECK(first ==
          (how == sim::accumulation::ideal
               ? 0x1.000002p24f
               : by_the_rules<e4m3fnuz, e4m3fnuz>(
                     std::array<std::uint8_t, 16>{0x01, static_cast<std::uint8_t>(one)}.data(),
                     std::array<std::uint8_t, 16>{0x81, static_cast<std::uint8_t>(one)}.data(), 0x1.000002p24f)));
  }
}

TEST_CASE("hip: FNUZ bytes mean what OCP's do") {
  CHECK(bytes_that_differ<e4m3>() == 0);
  CHECK(bytes_that_differ<e5m2>() == 0);
}

TEST_CASE("hip: the lanes of a wave exchange, vote and wait") {
  int wrong = 0;
  in_wave([&](int lane) {
    for (int mask = 1; mask < 64; mask *= 2) {
      wrong += machine::shuffle_xor(static_cast<std::uint32_t>(lane), mask) != static_cast<std::uint32_t>(lane ^ mask);
      wrong += machine::shuffle_xor(static_cast<float>(lane), mask) != static_cast<float>(lane ^ mask);
    }
    wrong += machine::shuffle_xor(static_cast<std::uint32_t>(lane), 48) != static_cast<std::uint32_t>(lane ^ 48);
    wrong += !machine::any_in_warp(lane == 63) || machine::any_in_warp(lane == 64);
    machine::sync_warp();
    machine::sync_block();
  });
  CHECK(wrong == 0);
  CHECK(machine::permute_bytes(0x33221100, 0x77665544, 0x6140) == 0x66114400);
}
