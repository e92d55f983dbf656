// SPDX-License-Identifier: Apache-2.0
// The largest of each row of a fragment, found by comparing bits.
#include <octavo/backends/cuda/hopper/fragments.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace octavo;
using namespace octavo::backends;

namespace {

constexpr int elements = 64;

struct maxima {
  float by_bits[2], by_value[2];
};

maxima of(const float (&x)[elements]) {
  maxima m{};
  hopper::row_maximum_of_bits(x, m.by_bits);
  hopper::row_maximum<elements>(m.by_value, [&](int i) { return x[i]; });
  return m;
}

}  // namespace

TEST_CASE("hopper: the largest of a row by its bits, wherever it stands") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (int at = 0; at < elements; ++at) {
    float x[elements];
    for (float& value : x) value = -std::fabs(normal(random));
    x[at] = 0.5f;
    x[at ^ 2] = 1e-3f;  // in the other row
    const maxima m = of(x);
    for (int half = 0; half < 2; ++half) CHECK(m.by_bits[half] == m.by_value[half]);
    CHECK(m.by_bits[hopper::row_half(at)] == 0.5f);
  }
  for (int round = 0; round < 100; ++round) {
    float x[elements];
    for (float& value : x) value = normal(random) * 100;
    const maxima m = of(x);
    for (int half = 0; half < 2; ++half) CHECK(m.by_bits[half] == m.by_value[half]);
  }
}

TEST_CASE("hopper: a row without a positive element has no positive maximum") {
  float x[elements];
  for (int i = 0; i < elements; ++i) x[i] = hopper::row_half(i) == 0 ? -1.0f - static_cast<float>(i) : 0.0f;
  CHECK(of(x).by_bits[0] < 0);
  CHECK(of(x).by_bits[1] == 0);
  for (float& value : x) value = -std::numeric_limits<float>::infinity();
  CHECK(of(x).by_bits[0] < 0);
}

// Scores or weights with a NaN have no largest element: what comes of their row is NaN, whatever it is scaled by.
TEST_CASE("hopper: a NaN is a row's maximum or none of it, by its sign") {
  float x[elements] = {};
  x[6] = 1;
  x[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(of(x).by_bits[hopper::row_half(7)]));
  x[7] = std::copysign(x[7], -1.0f);
  CHECK(of(x).by_bits[hopper::row_half(7)] == 1);
}
