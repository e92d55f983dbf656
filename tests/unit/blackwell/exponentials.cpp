// SPDX-License-Identifier: Apache-2.0
// The forward's exponentials on Blackwell: how exact the polynomial is, and which weights are made by it.
#include <octavo/algorithm/softmax.hpp>
#include <octavo/backends/sim/blackwell.hpp>
#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "conformance/judge.hpp"

using namespace octavo_tests;
using octavo::e4m3;
using octavo::backends::blackwell::exp2_by_polynomial;
using octavo::backends::blackwell::functions;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float by_polynomial(float x) {
  float low = x, high = 0;
  exp2_by_polynomial(low, high);
  REQUIRE(high == 1);
  return low;
}

float rounded(float weight) { return e4m3::decode(e4m3::nearest_even(weight).bits); }

/// A softmax scale at which 2^8 2^(scale log2(e) - M) beside a tie of E4M3 is rounded in one direction if it is a
/// polynomial and in the other one if not.
float scale_beside_a_tie(float& ratio_of_weights) {
  for (int sixteenth = 17; sixteenth < 32; sixteenth += 2) {
    const float near = static_cast<float>((std::log2(sixteenth / 16.0) + 1) / octavo::log2_e);
    float scale = near * (1 - 1e-5f);
    for (int i = 0; i < 1000; ++i, scale = std::nextafter(scale, infinity)) {
      const float s = octavo::score_map<functions>::of(scale, 0).scale_log2, x = s + (8 - std::ceil(s));
      const float a = rounded(by_polynomial(x)), b = rounded(functions::exp2(x));
      ratio_of_weights = a / b;
      if (a != b) return scale;
    }
  }
  FAIL("no such scale");
  return 0;
}

}  // namespace

TEST_CASE("Blackwell's polynomial for 2^x") {
  for (float x = -126; x <= 127; x += 0x1p-9f + 0x1p-20f) {
    const double y = by_polynomial(x), exact = std::exp2(double{x});
    if (!(std::fabs(y - exact) <= 2e-7 * exact)) FAIL_CHECK("2^" << x << " is " << exact << ", not " << y);
  }
  for (int n = -126; n <= 127; ++n) CHECK(by_polynomial(static_cast<float>(n)) == std::exp2(static_cast<float>(n)));
  for (float x = -127; x <= -126; x += 0x1p-9f) CHECK(std::fabs(by_polynomial(x) - std::exp2(x)) <= 0x1p-126f);
  for (const float x : {-127.0f, -128.5f, -1e30f, -infinity}) CHECK(by_polynomial(x) == 0);
  CHECK(std::isnan(by_polynomial(infinity)));
  CHECK(std::isnan(by_polynomial(std::nanf(""))));
}

// All scores are alike, and V tells the weights apart that a polynomial made: a quarter of them. The backward of
// `consistent` repeats the forward's weights, so that its forward must have made them all in one way.
TEST_CASE("Blackwell's forward makes a quarter of its weights by polynomials, but none for the consistent delta") {
  const octavo::backend_entry* backend = find_backend(octavo::all_backends(), "sim-cuda-blackwell");
  if (backend == nullptr || !backend->compiled) {
    MESSAGE("skipped: sim-cuda-blackwell is not compiled");
    return;
  }
  float ratio_of_weights = 0;
  test_case c;
  c.p = {.s_q = 128, .s_kv = 128, .softmax_scale = scale_beside_a_tie(ratio_of_weights)};
  c.q = c.k = c.v = floats(128 * 64);
  c.backward = false;
  for (std::size_t j = 0; j < 128; ++j) {
    c.q[j * 64] = c.k[j * 64] = 1;
    c.v[j * 64 + (j / 4 % 4 == 3 ? 0 : 1)] = 1;
  }
  for (const std::string delta : {"matched", "consistent"}) {  // (stale's M is no whole number: all weights are 1)
    CAPTURE(delta);
    const results r = run(*backend, *backend->find("mx32", delta, false), c, {.o_in_f32 = true});
    REQUIRE_MESSAGE(r.ok(), r.status.message.c_str());
    const float expected = delta == "consistent" ? 1 : ratio_of_weights;
    for (std::size_t i = 0; i < 128; ++i)
      CHECK(3 * r.o[i * 64] / r.o[i * 64 + 1] == doctest::Approx(expected).epsilon(1e-5));
  }
}
