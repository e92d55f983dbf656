// SPDX-License-Identifier: Apache-2.0
// What may reach what: NaN and infinity only the rows that see them, later tokens no earlier row of recipe token.
#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;
namespace delta = octavo::delta;

namespace {

constexpr std::int64_t tokens = 96, channels = 64, bad = 40;

attention_case causal() {
  attention_case c;
  c.p.s_q = c.p.s_kv = tokens;
  c.p.mask.causal = octavo::causal_mask::top_left;
  fill_normal(c, 17);
  return c;
}
constexpr std::size_t at(std::int64_t row, std::int64_t channel) {
  return static_cast<std::size_t>(row * channels + channel);
}

}  // namespace

TEST_CASE_TEMPLATE("a non-finite key or value reaches the rows that see it", Recipe, recipe::mx32, recipe::token,
                   recipe::tile, recipe::tensor, recipe::bf16, recipe::exact) {
  for (const float poison : {NAN, INFINITY, -INFINITY})
    for (numbers attention_case::* input : {&attention_case::k, &attention_case::v}) {
      attention_case c = causal();
      (c.*input)[at(bad, 3)] = poison;
      const attention_result r = run<Recipe>(c);
      CHECK(all_finite(part(r.o, 0, bad * channels)));
      CHECK(all_finite(part(r.dq, 0, bad * channels)));
      CHECK(all_finite(part(r.lse, 0, bad)));
      for (std::int64_t i = bad; i < tokens; ++i) CHECK(std::isnan(r.o[at(i, 3)]));
      // The neighbours in the bad element's block keep their scale: the rows before it are those of a zero in its
      // place.
      (c.*input)[at(bad, 3)] = 0;
      const attention_result clean = run<Recipe>(c);
      CHECK(std::equal(r.o.begin(), r.o.begin() + bad * channels, clean.o.begin()));
    }
}

TEST_CASE_TEMPLATE("a non-finite query or dO stays in its row", Delta, delta::stale, delta::matched,
                   delta::consistent) {
  for (numbers attention_case::* input : {&attention_case::q, &attention_case::dout}) {
    attention_case c = causal();
    (c.*input)[at(bad, 3)] = NAN;
    const attention_result r = run<recipe::mx32, Delta>(c);
    for (std::int64_t i = 0; i < tokens; ++i) CHECK(std::isnan(r.dq[at(i, 0)]) == (i == bad));
    for (std::int64_t j = 0; j < tokens; ++j) CHECK(std::isnan(r.dk[at(j, 0)]) == (j <= bad));
  }
}

TEST_CASE("keys that no row sees may hold anything") {
  attention_case c;
  c.p.s_q = 32;
  c.p.s_kv = tokens;
  c.p.mask.causal = octavo::causal_mask::top_left;
  c.p.key_centring = octavo::key_centring::batch;
  fill_normal(c, 18);
  for (std::int64_t j = 32; j < tokens; ++j) c.k[at(j, 0)] = c.v[at(j, 1)] = NAN;
  const attention_result r = run<recipe::mx32>(c);
  for (const numbers* x : {&r.o, &r.lse, &r.dq, &r.dk, &r.dv, &r.delta}) CHECK(all_finite(*x));
}

TEST_CASE_TEMPLATE("recipe token: the future changes no bit of an earlier row", Delta, delta::stale, delta::matched,
                   delta::consistent) {
  const attention_case c = causal();
  const attention_result r = run<recipe::token, Delta>(c);
  attention_case other = c;
  for (numbers attention_case::* input :
       {&attention_case::q, &attention_case::k, &attention_case::v, &attention_case::dout})
    for (std::size_t i = at(bad, 0); i < (other.*input).size(); ++i) (other.*input)[i] *= -1000;
  const attention_result changed = run<recipe::token, Delta>(other);
  CHECK(std::equal(r.o.begin(), r.o.begin() + bad * channels, changed.o.begin()));
  CHECK(std::equal(r.lse.begin(), r.lse.begin() + bad, changed.lse.begin()));
  CHECK(std::equal(r.dq.begin(), r.dq.begin() + bad * channels, changed.dq.begin()));
}
