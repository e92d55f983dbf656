// SPDX-License-Identifier: Apache-2.0
// The two ways in which the simulated tensor cores add.
#include <octavo/backends/sim/product.hpp>
#include <octavo/numeric/e4m3.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "support/unit_sums.hpp"

namespace {

namespace sim = octavo::backends::sim;
using octavo::e4m3;

/// c + the products of these pairs, as one element of D.
float sum(sim::accumulation how, float c, std::initializer_list<std::pair<float, float>> products) {
  static sim::operand_bytes bytes;
  bytes.a.fill(0);
  bytes.b.fill(0);
  std::vector<float> d(64 * 8, 0.0f);
  d[0] = c;
  std::size_t k = 0;
  for (const auto& [a, b] : products) {
    bytes.a[k] = e4m3::nearest_even(a).bits;
    bytes.b[k++] = e4m3::nearest_even(b).bits;
  }
  sim::multiply(bytes, d.data(), 8, how);
  return d[0];
}
float model(float c, std::initializer_list<std::pair<float, float>> products) {
  return sum(sim::accumulation::model, c, products);
}
float ideal(float c, std::initializer_list<std::pair<float, float>> products) {
  return sum(sim::accumulation::ideal, c, products);
}

/// One element by the rules.
float by_the_rules(const std::uint8_t* a, const std::uint8_t* b, float c) {
  octavo_tests::scaled_element x[32], y[32];
  for (int k = 0; k < 32; ++k) {
    const e4m3 of_a = e4m3::from_bits(a[k]), of_b = e4m3::from_bits(b[k]);
    if (of_a.is_nan() || of_b.is_nan()) return std::bit_cast<float>(0x7fffffffu);
    x[k] = octavo_tests::scaled_element::of(static_cast<float>(of_a), 0);
    y[k] = octavo_tests::scaled_element::of(static_cast<float>(of_b), 0);
  }
  return static_cast<float>(octavo_tests::multiply_step(octavo_tests::hopper_unit, x, y, 32, c));
}

const float tiny = std::ldexp(1.0f, -7);  // its square is 2^-14

}  // namespace

TEST_CASE("sim: the model cuts what is below 13 bits under the largest exponent") {
  CHECK(model(0, {{1, 1}, {tiny, tiny}}) == 1);
  CHECK(model(0, {{1, 1}, {tiny, 2 * tiny}}) == 1 + std::ldexp(1.0f, -13));
  CHECK(model(1, {{tiny, tiny}}) == 1);
  CHECK(model(1, {{tiny, 2 * tiny}}) == 1 + std::ldexp(1.0f, -13));
  // Each part is cut before the sum, toward zero.
  CHECK(model(1, {{tiny, tiny}, {tiny, tiny}, {tiny, tiny}, {tiny, tiny}}) == 1);
  CHECK(model(0, {{1, 1}, {tiny, -tiny}}) == 1);
  CHECK(model(0, {{-1, 1}, {tiny, -tiny}}) == -1);
  CHECK(model(0, {{tiny, 2 * tiny}, {tiny, tiny}, {1, 1}}) == 1 + std::ldexp(1.0f, -13));
  // C from outside of the format is cut too.
  CHECK(model(1 + std::ldexp(1.0f, -20), {}) == 1);
  CHECK(model(-1 - std::ldexp(1.0f, -14), {{tiny, tiny}}) == -1);
}

TEST_CASE("sim: the model's product of 1.5 and 1.5 is aligned by exponent 0, the result by its own") {
  const float bit = std::ldexp(1.0f, -13);
  CHECK(model(0, {{1.5f, 1.5f}, {tiny, 2 * tiny}}) == 2.25f);  // 2^-13 is summed and then cut from 2.25
  CHECK(model(0, {{1.5f, 1.5f}, {tiny, 2 * tiny}, {tiny, 2 * tiny}}) == 2.25f + 2 * bit);
  CHECK(model(-2, {{1.5f, 1.5f}, {tiny, 2 * tiny}}) == 0.25f);  // C's exponent 1 cuts 2^-13
  CHECK(model(0, {{-1, 2}, {1.5f, 1.5f}, {tiny, 4 * tiny}}) == 0.25f + 2 * bit);
}

TEST_CASE("sim: subnormal operands keep the exponent of the smallest normal number, zeros none") {
  const float least = std::ldexp(1.0f, -9);  // 2^-3 2^-6
  CHECK(model(0, {{least, least}}) == std::ldexp(1.0f, -18));
  // Aligned to 2^-12 (not 2^-18), of which 13 bits are kept: 2^-25 stays, 2^-26 does not.
  CHECK(model(std::ldexp(1.0f, -25), {{least, least}}) == std::ldexp(1.0f, -18) + std::ldexp(1.0f, -25));
  CHECK(model(std::ldexp(1.0f, -26), {{least, least}}) == std::ldexp(1.0f, -18));
  CHECK(model(std::ldexp(1.0f, -100), {{0, 448}}) == std::ldexp(1.0f, -100));
}

TEST_CASE("sim: the ideal sum is rounded once") {
  CHECK(ideal(0, {{1, 1}, {tiny, tiny}}) == 1 + std::ldexp(1.0f, -14));
  CHECK(ideal(std::ldexp(1.0f, -30), {{1, 1}, {-1, 1}}) == std::ldexp(1.0f, -30));
  const float half = std::ldexp(1.0f, -24);  // half a unit of 1 in FP32
  CHECK(ideal(half, {{1, 1}}) == 1);
  CHECK(ideal(std::nextafter(half, 1.0f), {{1, 1}}) == 1 + 2 * half);
  CHECK(sim::detail::add_once(1.0, half) == 1);
  // A little more or less than half a unit, by less than a double shows: rounding twice would not see it.
  CHECK(sim::detail::add_once(1.0 + static_cast<double>(half), std::ldexp(1.0f, -80)) == 1 + 2 * half);
  CHECK(sim::detail::add_once(1.0 + static_cast<double>(half), -std::ldexp(1.0f, -80)) == 1);
}

TEST_CASE("sim: NaN and infinity") {
  for (const auto how : {sim::accumulation::ideal, sim::accumulation::model}) {
    const float nan = std::nanf("");
    CHECK(std::isnan(sum(how, 0, {{nan, 0}})));
    CHECK(std::isnan(sum(how, 0, {{0, nan}})));
    CHECK(std::isnan(sum(how, nan, {{1, 1}})));
    CHECK(std::isnan(sum(how, nan, {})));
    CHECK(sum(how, INFINITY, {{448, -448}}) == INFINITY);
    CHECK(sum(how, -INFINITY, {}) == -INFINITY);
  }
}

TEST_CASE("sim: the model's vectors give what its rules give, bit for bit") {
  std::mt19937 random(11);
  auto bytes = std::make_unique<sim::operand_bytes>();
  int wrong = 0;
  for (int round = 0; round < 24; ++round) {
    const int columns = round % 3 == 0 ? 136 : round % 3 == 1 ? 72 : 32;
    const int mask = round % 4 == 0   ? 0xff
                     : round % 4 == 1 ? 0x8f
                     : round % 4 == 2 ? 0xbf
                                      : 0xfe;  // small, all, no NaN
    for (auto& x : bytes->a) x = static_cast<std::uint8_t>(random() & mask);
    for (auto& x : bytes->b) x = static_cast<std::uint8_t>(random() & mask);
    std::vector<float> d(static_cast<std::size_t>(64 * columns)), before;
    for (float& x : d)
      x = std::ldexp(static_cast<float>(static_cast<int>(random() % 65536) - 32768),
                     static_cast<int>(random() % 60) - 45);
    before = d;
    sim::multiply(*bytes, d.data(), columns, sim::accumulation::model);
    for (int m = 0; m < 64; ++m)
      for (int n = 0; n < columns; ++n) {
        const auto at = static_cast<std::size_t>(m * columns + n);
        const float right = by_the_rules(&bytes->a[static_cast<std::size_t>(m * 32)],
                                         &bytes->b[static_cast<std::size_t>(n * 32)], before[at]);
        wrong += std::bit_cast<std::uint32_t>(right) != std::bit_cast<std::uint32_t>(d[at]);
      }
  }
  CHECK(wrong == 0);
}
