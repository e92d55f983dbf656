// SPDX-License-Identifier: Apache-2.0
// exp2 and tanh of the Kokkos backend over their whole range, against float64.
#include <octavo/backends/kokkos/math.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kokkos = octavo::backends::kokkos_detail;

TEST_CASE("kokkos: exp2 is within 2^-22 where it is not flushed") {
  double worst = 0;
  for (float x = -126.0f; x <= 127.0f; x += 0.000977f) {
    const double truth = std::exp2(double{x});
    worst = std::max(worst, std::abs(double{kokkos::exp2(x)} - truth) / truth);
  }
  CHECK(worst <= std::exp2(-22));
}

TEST_CASE("kokkos: exp2 of integers is exact, and ends do what they must") {
  for (int n = -126; n <= 127; ++n) CHECK(kokkos::exp2(static_cast<float>(n)) == std::ldexp(1.0f, n));
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(kokkos::exp2(-infinity) == 0);
  CHECK(kokkos::exp2(-126.5f) == 0);
  CHECK(kokkos::exp2(-1e30f) == 0);
  CHECK(std::isfinite(kokkos::exp2(1e30f)));
  CHECK(kokkos::exp2(1e30f) > 0x1p127f);
  CHECK(std::isnan(kokkos::exp2(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("kokkos: tanh") {
  double worst = 0;
  for (float x = -12.0f; x <= 12.0f; x += 0.00031f) {
    const double truth = std::tanh(double{x});
    if (truth != 0) worst = std::max(worst, std::abs(double{kokkos::tanh(x)} - truth) / std::abs(truth));
  }
  CHECK(worst < 1e-6);
  CHECK(kokkos::tanh(0.0f) == 0);
  CHECK(kokkos::tanh(std::numeric_limits<float>::infinity()) == 1);
  CHECK(kokkos::tanh(-std::numeric_limits<float>::infinity()) == -1);
  CHECK(std::isnan(kokkos::tanh(std::numeric_limits<float>::quiet_NaN())));
}
