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

/// Null where it is not compiled.
const octavo::backend_entry* simulated_blackwell() {
  const octavo::backend_entry* backend = find_backend(octavo::all_backends(), "sim-cuda-blackwell");
  if (backend != nullptr && backend->compiled) return backend;
  MESSAGE("skipped: sim-cuda-blackwell is not compiled");
  return nullptr;
}

/// x rounded to a leading bit and three more, as E4M3 keeps them of a normal number.
float in_four_bits(float x) {
  int exponent;
  const float leading = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(leading * 16), exponent - 4);
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
  const octavo::backend_entry* backend = simulated_blackwell();
  if (backend == nullptr) return;
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

// From 2^27 on M's last place is 16: 2^(s + (8 - M)) would be 2^(s - M) or 2^(s - M + 16).
TEST_CASE("Blackwell's weights are at most 1 whatever M is") {
  const octavo::backend_entry* backend = simulated_blackwell();
  if (backend == nullptr) return;
  test_case c;
  c.p = {.s_q = 3, .s_kv = 130};
  c.q = c.dout = floats(3 * 64), c.k = c.v = floats(130 * 64);
  for (std::size_t i = 0; i < 3; ++i) c.q[i * 64] = 4096, c.dout[i * 64] = 1;
  for (std::size_t j = 0; j < 130; ++j) c.k[j * 64] = 4096, c.v[j * 64] = 1;
  for (const float scale : {5.7f, 6.1f, 6.9f, 7.3f, 300.0f, -6.1f, -300.0f})
    for (const std::string delta : {"stale", "matched", "consistent"}) {
      CAPTURE(scale);
      CAPTURE(delta);
      for (std::size_t i = 0; i < 3; ++i) c.q[i * 64] = std::copysign(4096.0f, scale);
      c.p.softmax_scale = std::fabs(scale);
      const results r = run(*backend, *backend->find("mx32", delta, false), c, {.o_in_f32 = true});
      REQUIRE_MESSAGE(r.ok(), r.status.message.c_str());
      for (std::size_t i = 0; i < 3; ++i) CHECK(r.o[i * 64] == doctest::Approx(1).epsilon(1e-5));
      for (const float l : r.l) CHECK(l == 130);
      for (std::size_t j = 0; j < 130; ++j) CHECK(r.dv[j * 64] == doctest::Approx(3.0 / 130).epsilon(0.07));
    }
}

// Where M is beyond 2^20, products are rounded before M is subtracted, and not so where it is not. A tile of scores below
// it, after one that has raised M beyond it, is such a row's as well: the backward knows but the last M.
TEST_CASE("Blackwell's backward repeats the consistent forward's weights where M has become large") {
  const octavo::backend_entry* backend = simulated_blackwell();
  if (backend == nullptr) return;
  test_case c;
  c.p = {.s_q = 1, .s_kv = 192};
  c.q = c.dout = floats(64), c.k = c.v = floats(192 * 64);
  c.q[0] = 1024, c.q[32] = 1, c.dout[0] = 1;
  c.k[0] = 1408, c.k[32] = 4;  // M is 2^20 + 1
  for (std::size_t j = 0; j < 64; ++j) {
    c.k[(128 + j) * 64] = 1408, c.k[(128 + j) * 64 + 32] = static_cast<float>(j % 16) / 8;
    c.v[(128 + j) * 64 + j] = 1;
  }
  float scale = static_cast<float>((0x1p20 - 2) / (1024.0 * 1408) / octavo::log2_e);
  for (int i = 0; i < 8; ++i, scale = std::nextafter(scale, 0.0f)) {
    CAPTURE(i);
    c.p.softmax_scale = scale;
    const results r = run(*backend, *backend->find("mx32", "consistent", false), c, {.o_in_f32 = true});
    REQUIRE_MESSAGE(r.ok(), r.status.message.c_str());
    CHECK(r.m[0] == 0x1p20f + 1);
    for (std::size_t j = 0; j < 64; ++j) CHECK(r.dv[(128 + j) * 64] == in_four_bits(r.o[j]));
  }
}
