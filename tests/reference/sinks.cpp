// SPDX-License-Identifier: Apache-2.0
// Sinks: one more logit in the denominator, from far below all scores to far above them.
#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;
namespace delta = octavo::delta;

namespace {

attention_case make(float sink) {
  attention_case c;
  c.p.s_q = c.p.s_kv = 40;
  c.p.mask.causal = octavo::causal_mask::top_left;
  c.p.sink = true;
  fill_normal(c, 31);
  c.sink = {sink};
  return c;
}

}  // namespace

TEST_CASE_TEMPLATE("a sink far above the scores takes all the weight", Delta, delta::stale, delta::matched,
                   delta::consistent) {
  for (const float sink : {60.0f, 100.0f, 800.0f, 1e30f, INFINITY}) {
    CAPTURE(sink);
    const attention_result r = run<recipe::token, Delta>(make(sink));
    for (const float lse : r.lse) CHECK((lse == sink || std::fabs(lse - sink) < 1e-6 * sink));
    for (const float x : r.o) CHECK(std::fabs(x) < 1e-20);
    for (const numbers* x : {&r.dq, &r.dk, &r.dv, &r.dsink, &r.delta, &r.row_sum}) {
      CHECK(all_finite(*x));
      for (const float value : *x) CHECK(std::fabs(value) < 1e-5);
    }
  }
}

TEST_CASE_TEMPLATE("a sink of -inf is none", Delta, delta::stale, delta::matched, delta::consistent) {
  attention_case c = make(-INFINITY);
  const attention_result with = run<recipe::mx32, Delta>(c);
  c.p.sink = false;
  c.sink.clear();
  const attention_result without = run<recipe::mx32, Delta>(c);
  CHECK(with.o == without.o);
  CHECK(with.lse == without.lse);
  CHECK(with.dq == without.dq);
  CHECK(with.dk == without.dk);
  CHECK(with.dsink[0] == 0);
}

TEST_CASE("a row that sees the sink alone") {
  attention_case c = make(1.5f);
  c.p.s_q = 8;
  c.p.s_kv = 4;
  c.p.mask.causal = octavo::causal_mask::bottom_right;
  c.q.resize(8 * 64), c.dout.resize(8 * 64), c.k.resize(4 * 64), c.v.resize(4 * 64);
  const attention_result r = run<recipe::mx32>(c);
  CHECK(all_zero(part(r.o, 0, 4 * 64)));
  for (const float lse : part(r.lse, 0, 4)) CHECK(lse == doctest::Approx(1.5f));
  CHECK(all_zero(part(r.delta, 0, 4)));
}

TEST_CASE_TEMPLATE("with the sink's own gradient the row sums are zero", Recipe, recipe::mx32, recipe::token,
                   recipe::exact) {
  attention_case c = make(0.7f);
  for (const auto centring : {octavo::key_centring::off, octavo::key_centring::batch}) {
    c.p.key_centring = centring;
    CHECK(row_sum_ratio(run<Recipe>(c)) < 1e-12);
  }
}

TEST_CASE("centred keys: the same LSE, and with a sink the same dQ") {
  attention_case c = make(0.7f);
  c.p.element = octavo::dtype::f32;
  for (std::size_t i = 0; i < c.k.size(); ++i) c.k[i] += 3 * std::sin(static_cast<float>(i % 64));
  const attention_result plain = run<recipe::exact>(c);
  c.p.key_centring = octavo::key_centring::batch;
  const attention_result centred = run<recipe::exact>(c);
  CHECK(relative_error(centred.lse, plain.lse) < 1e-6);
  CHECK(relative_error(centred.o, plain.o) < 1e-6);
  CHECK(relative_error(centred.dq, plain.dq) < 1e-6);
  CHECK(relative_error(centred.dk, plain.dk) < 1e-6);
  CHECK(relative_error(centred.dsink, plain.dsink) < 1e-6);
}
