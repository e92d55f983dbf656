// SPDX-License-Identifier: Apache-2.0
// exp2 and tanh of the CPU backend over their whole range, against float64.
#include <octavo/backends/cpu/math.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace cpu = octavo::backends::cpu_detail;

TEST_CASE("exp2 is within 2^-22.5 where it is not flushed") {
  double worst = 0;
  for (float x = -126.0f; x <= 127.0f; x += 0.000977f) {
    const double truth = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(cpu::exp2(x)) - truth) / truth);
  }
  CHECK(worst <= std::exp2(-22.5));
}

TEST_CASE("exp2 of integers is exact: the rescaling of a running maximum changes no mantissa") {
  for (int n = -126; n <= 127; ++n) CHECK(cpu::exp2(static_cast<float>(n)) == std::ldexp(1.0f, n));
}

TEST_CASE("exp2 at the ends") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(cpu::exp2(-infinity) == 0);
  CHECK(cpu::exp2(-126.5f) == 0);
  CHECK(cpu::exp2(-1e30f) == 0);
  CHECK(std::isfinite(cpu::exp2(1e30f)));
  CHECK(cpu::exp2(1e30f) > 0x1p127f);
  CHECK(std::isnan(cpu::exp2(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("tanh") {
  double worst = 0;
  for (float x = -12.0f; x <= 12.0f; x += 0.00031f) {
    const double truth = std::tanh(static_cast<double>(x));
    if (truth != 0) worst = std::max(worst, std::abs(static_cast<double>(cpu::tanh(x)) - truth) / std::abs(truth));
  }
  CHECK(worst <= 2e-6);
  CHECK(cpu::tanh(0.0f) == 0);
  CHECK(cpu::tanh(1e30f) == 1);
  CHECK(cpu::tanh(-1e30f) == -1);
  CHECK(std::isnan(cpu::tanh(std::numeric_limits<float>::quiet_NaN())));
}
