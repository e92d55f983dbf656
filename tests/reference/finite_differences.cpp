// SPDX-License-Identifier: Apache-2.0
// The gradients of R64 against differences of its own forward, for loss = sum(O * W), along random directions.
#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;

namespace {

double loss(const attention_case& c) {
  attention_case forward = c;
  forward.dout.clear();
  const numbers o = run<recipe::exact>(forward).o;
  double sum = 0;
  for (std::size_t i = 0; i < o.size(); ++i) sum += double{o[i]} * c.dout[i];
  return sum;
}

/// The derivative of the loss along `direction` in one input, from five points: the error falls with step^4.
double difference(const attention_case& c, numbers attention_case::* input, const numbers& direction) {
  constexpr float step = 0.03f;
  const auto at = [&](float t) {
    attention_case moved = c;
    for (std::size_t i = 0; i < direction.size(); ++i) (moved.*input)[i] += t * step * direction[i];
    return loss(moved);
  };
  return (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12 * double{step});
}

void check_gradients(attention_case c) {
  c.p.element = octavo::dtype::f32;
  fill_normal(c, 5);
  const attention_result r = run<recipe::exact>(c);
  CHECK(row_sum_ratio(r) < 1e-6);

  std::mt19937 random(7);
  const auto check = [&](const char* name, numbers attention_case::* input, const numbers& gradient) {
    CAPTURE(name);
    for (int trial = 0; trial < 3; ++trial) {
      // Directions of unit length, so that a step moves scores by much less than 1; the sink's few elements one by one.
      numbers direction = normal(static_cast<std::int64_t>(gradient.size()), random);
      double length = 0, expected = 0, scale = 0;
      for (const float x : direction) length += double{x} * x;
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        direction[i] *= static_cast<float>(1 / std::sqrt(length));
        expected += double{gradient[i]} * direction[i];
        scale += double{gradient[i]} * gradient[i];
      }
      scale = std::sqrt(scale / static_cast<double>(gradient.size()));
      REQUIRE(scale > 0);
      CHECK(std::fabs(difference(c, input, direction) - expected) < 2e-3 * scale);
    }
  };
  check("q", &attention_case::q, r.dq);
  check("k", &attention_case::k, r.dk);
  check("v", &attention_case::v, r.dv);
  if (c.p.sink) check("sink", &attention_case::sink, r.dsink);
}

attention_case small() {
  attention_case c;
  c.p.b = 2;
  c.p.s_q = 17;
  c.p.s_kv = 23;
  c.p.d_qk = c.p.d_v = 32;
  return c;
}

}  // namespace

TEST_CASE("R64 gradients: masks") {
  attention_case c = small();
  SUBCASE("none") {}
  SUBCASE("causal top-left") { c.p.mask.causal = octavo::causal_mask::top_left; }
  SUBCASE("causal bottom-right") { c.p.mask.causal = octavo::causal_mask::bottom_right; }
  SUBCASE("window") { c.p.mask = {octavo::causal_mask::none, 3, 2}; }
  SUBCASE("causal window") { c.p.mask = {octavo::causal_mask::bottom_right, 4, -1}; }
  SUBCASE("more queries than keys: rows without any") {
    c.p.s_q = 23;
    c.p.s_kv = 9;
    c.p.mask.causal = octavo::causal_mask::bottom_right;
  }
  check_gradients(c);
}

TEST_CASE("R64 gradients: options") {
  attention_case c = small();
  c.p.mask.causal = octavo::causal_mask::top_left;
  SUBCASE("grouped queries") {
    c.p.h_q = 6;
    c.p.h_kv = 2;
  }
  SUBCASE("softcap") { c.p.softcap = 1.5f; }
  SUBCASE("softmax scale") { c.p.softmax_scale = 0.4f; }
  SUBCASE("sink") {
    c.p.h_q = 2;
    c.p.sink = true;
  }
  SUBCASE("sink, softcap, grouped queries, window") {
    c.p.h_q = 4;
    c.p.h_kv = 2;
    c.p.sink = true;
    c.p.softcap = 2;
    c.p.mask = {octavo::causal_mask::none, 5, 1};
  }
  SUBCASE("sink with centred keys") {
    c.p.sink = true;
    c.p.key_centring = octavo::key_centring::batch;
  }
  SUBCASE("d_qk and d_v differ") { c.p.d_v = 64; }
  check_gradients(c);
}

TEST_CASE("R64 gradients: packed documents") {
  attention_case c = small();
  c.p.packed = true;
  c.p.b = 4;
  c.p.h_q = 4;
  c.p.h_kv = 2;
  c.p.sink = true;
  c.cu_q = {0, 7, 7, 16, 21};
  c.cu_kv = {0, 9, 12, 12, 30};
  c.p.total_q = 24;
  c.p.total_kv = 31;
  SUBCASE("full") {}
  SUBCASE("causal") { c.p.mask.causal = octavo::causal_mask::bottom_right; }
  check_gradients(c);
}
