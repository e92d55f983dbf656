// SPDX-License-Identifier: Apache-2.0
// Softmax does not change when a vector u is added to all keys, so dQ must not either. A delta that leaves the rows of
// dS with a sum of -e_i gives dQ an error of e_i times the mean key instead: it grows with u without bound. This is the
// sharpest test of a delta policy, and of key centring, which takes u away before anything is rounded.
#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;
using octavo::key_centring;

namespace {

/// Keys with c * u added. V has a common mode: P dP and delta are large beside their difference. Inputs are f32, so
/// that K itself holds what is added to it.
class shifted_keys {
 public:
  explicit shifted_keys(const octavo::problem& p) : base_(make_case(p, input_family::randn, 7)) {
    inputs_detail::generator make(input_family::randn, 8);
    direction_ = make.normal(p.d_qk);
    add_direction(base_.v, make.normal(p.d_v), 3);
  }
  test_case by(float c) const {
    test_case x = base_;
    add_direction(x.k, direction_, c);
    if (x.p.key_centring == key_centring::given) {
      x.key_shift.assign(static_cast<std::size_t>(x.p.b * x.p.h_kv * x.p.d_qk), 0);
      add_direction(x.key_shift, direction_, c);
    }
    return x;
  }

 private:
  test_case base_;
  floats direction_;
};

octavo::problem shape(key_centring centring = key_centring::off) {
  octavo::problem p{.h_q = 2, .s_q = 96, .s_kv = 160, .element = octavo::dtype::f32};
  p.key_centring = centring;
  return p;
}

}  // namespace

TEST_CASE("key shift: the true dQ does not move") {
  const shifted_keys keys(shape());
  const results still = exact(keys.by(0));
  for (const float c : {4.0f, 16.0f}) CHECK(relative_error(exact(keys.by(c)).dq, still.dq) < 1e-5);
}

TEST_CASE("key shift: the error of a stale dQ grows linearly, the matched one stays far below") {
  const shifted_keys keys(shape());
  const floats truth = exact(keys.by(0)).dq;
  for_each_engine(shape(), {.deltas = {"stale"}}, [&](const candidate& on) {
    const octavo::engine* e = on.backend.find(on.engine.recipe, "matched", false);
    REQUIRE(e != nullptr);
    const candidate matched{on.backend, *e};
    double previous = 0;
    for (const float c : {4.0f, 8.0f, 16.0f}) {
      CAPTURE(c);
      const double error = relative_error(on(keys.by(c)).dq, truth),
                   matched_error = relative_error(matched(keys.by(c)).dq, truth);
      CAPTURE(error);
      CAPTURE(matched_error);
      CHECK(matched_error < error / 5);
      if (previous > 0) {
        CHECK(error > 1.5 * previous);
        CHECK(error < 2.6 * previous);
      }
      previous = error;
    }
  });
}

TEST_CASE("key shift: with centred keys the matched dQ does not notice") {
  for (const key_centring centring : {key_centring::batch, key_centring::given}) {
    const shifted_keys keys(shape(centring));
    const results truth = exact(keys.by(0));
    for_each_engine(shape(centring), {.deltas = {"matched"}}, [&](const candidate& on) {
      const double still = relative_error(on(keys.by(0)).dq, truth.dq);
      for (const float c : {4.0f, 64.0f}) {
        CAPTURE(c);
        const results r = on(keys.by(c));
        CHECK(relative_error(r.dq, truth.dq) < 1.05 * still);
        CHECK(largest_difference(r.lse, exact(keys.by(c)).lse) < 0.1);  // of the true scores, shift and all
      }
    });
  }
}

// What centring changes is which numbers are rounded, not what is computed: with a small u that has nothing to do with
// the keys, results stay as far from the truth as they were. (In f32: BF16 keys would lose the bits that BF16 operands
// keep.)
TEST_CASE("centring by any vector leaves the results what they are") {
  octavo::problem p{.b = 2,
                    .h_q = 2,
                    .s_q = 70,
                    .s_kv = 150,
                    .element = octavo::dtype::f32,
                    .mask = {octavo::causal_mask::bottom_right}};
  const test_case plain = make_case(p, input_family::randn, 9);
  test_case centred = plain;
  centred.p.key_centring = key_centring::given;
  centred.key_shift = inputs_detail::generator(input_family::randn, 10).normal(p.b * p.h_kv * p.d_qk);
  multiply(centred.key_shift, 0.25f);
  test_case shifted = plain;  // the scores that the softmax of centred keys sees
  for (std::size_t i = 0; i < shifted.k.size(); ++i) {
    const std::size_t batch = i / (shifted.k.size() / static_cast<std::size_t>(p.b)),
                      d = static_cast<std::size_t>(p.d_qk);
    shifted.k[i] -= centred.key_shift[batch * d + i % d];
  }
  const results truth = exact(plain);
  const double lse_moves = distance(exact(shifted).lse, truth.lse);
  for_each_engine(centred.p, {}, [&](const candidate& on) {
    const results without = on(plain), with = on(centred);
    const auto as_good = [&](floats results::* field) {
      return relative_error(with.*field, truth.*field) < 1.25 * relative_error(without.*field, truth.*field);
    };
    CHECK(as_good(&results::o));
    CHECK(as_good(&results::dq));
    CHECK(as_good(&results::dk));
    CHECK(as_good(&results::dv));
    CHECK(distance(with.lse, truth.lse) < lse_moves / 5);
  });
}
