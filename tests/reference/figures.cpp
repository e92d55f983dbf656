// SPDX-License-Identifier: Apache-2.0
// How far the recipes and delta policies are from the truth: R8 against R64, on inputs where it matters.
//
//     randn   everything standard normal
//     hard    q = 2 randn, k = randn + 5 b (a bias of the keys), v = randn + 3 w (a common mode of the values)
//
// N = 1024, d = 64, causal, T = bf16. The bands are those of an independent emulation, somewhat widened.
#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;
namespace delta = octavo::delta;

namespace {

constexpr int tokens = 1024, channels = 64;

attention_case make_case(unsigned seed, bool hard) {
  attention_case c;
  c.p.s_q = c.p.s_kv = tokens;
  c.p.d_qk = c.p.d_v = channels;
  c.p.mask.causal = octavo::causal_mask::top_left;
  fill_normal(c, seed);
  if (!hard) return c;
  std::mt19937 random(seed + 1000);
  const numbers b = normal(channels, random), w = normal(channels, random);
  for (std::size_t i = 0; i < c.q.size(); ++i) {
    c.q[i] *= 2;
    c.k[i] += 5 * b[i % channels];
    c.v[i] += 3 * w[i % channels];
  }
  return c;
}

struct errors {
  double o, dq, dk, dv, row_sum;
};

template <class Recipe, class Delta>
errors measure(const std::string& name, const attention_case& c, const attention_result& truth) {
  const attention_result r = run<Recipe, Delta>(c);
  const errors e{relative_error(r.o, truth.o), relative_error(r.dq, truth.dq), relative_error(r.dk, truth.dk),
                 relative_error(r.dv, truth.dv), row_sum_ratio(r)};
  MESSAGE(name << ": O " << e.o << ", dQ " << e.dq << ", dK " << e.dk << ", dV " << e.dv << ", row sum / L1 "
               << e.row_sum);
  return e;
}

#define CHECK_BETWEEN(value, low, high) \
  CHECK((value) >= (low));              \
  CHECK((value) <= (high))

}  // namespace

TEST_CASE("standard normal input: every delta is as good as its recipe") {
  const attention_case c = make_case(1, false);
  const attention_result truth = run<recipe::exact>(c);
  CHECK(row_sum_ratio(truth) < 1e-12);

  const errors stale = measure<recipe::mx32, delta::stale>("randn mx32 stale", c, truth);
  CHECK_BETWEEN(stale.o, .042, .052);
  CHECK_BETWEEN(stale.dq, .060, .076);
  CHECK_BETWEEN(stale.dk, .060, .076);
  CHECK_BETWEEN(stale.row_sum, 1e-3, 6e-3);

  const errors matched = measure<recipe::mx32, delta::matched>("randn mx32 matched", c, truth);
  CHECK_BETWEEN(matched.o, .042, .053);
  CHECK_BETWEEN(matched.dq, .060, .075);
  CHECK_BETWEEN(matched.dk, .060, .075);
  CHECK(matched.row_sum < 1e-12);

  const errors consistent = measure<recipe::token, delta::consistent>("randn token consistent", c, truth);
  CHECK_BETWEEN(consistent.o, .042, .053);
  CHECK_BETWEEN(consistent.dq, .064, .080);
  CHECK_BETWEEN(consistent.dk, .064, .080);

  // What is left of the row sums is the rounding of O to BF16.
  attention_case wide = c;
  wide.p.element = octavo::dtype::f32;
  const errors in_f32 = measure<recipe::token, delta::consistent>("randn token consistent, T = f32", wide, truth);
  CHECK(in_f32.row_sum < 1e-7);

  for (const errors& tensor : {measure<recipe::tensor, delta::stale>("randn tensor stale", c, truth),
                               measure<recipe::tensor, delta::matched>("randn tensor matched", c, truth)})
    CHECK(tensor.dq < .09);
  const errors e5m2 = measure<recipe::e5m2_gradients<recipe::mx32>, delta::matched>("randn mx32 E5M2", c, truth);
  CHECK(e5m2.dq > matched.dq);
  CHECK(e5m2.dq < .15);
  CHECK(e5m2.row_sum < 1e-12);
}

TEST_CASE("hard input: a stale delta ruins dQ, a matched one does not") {
  for (const unsigned seed : {11u, 12u, 13u}) {
    CAPTURE(seed);
    const attention_case c = make_case(seed, true);
    const attention_result truth = run<recipe::exact>(c);

    const errors stale = measure<recipe::mx32, delta::stale>("hard mx32 stale", c, truth);
    CHECK_BETWEEN(stale.o, .014, .026);
    CHECK_BETWEEN(stale.dq, 1.2, 3.2);
    CHECK_BETWEEN(stale.dk, .18, .36);
    CHECK_BETWEEN(stale.row_sum, 4e-2, .16);

    const errors matched = measure<recipe::mx32, delta::matched>("hard mx32 matched", c, truth);
    CHECK_BETWEEN(matched.o, .014, .026);
    CHECK_BETWEEN(matched.dq, .2, .40);
    CHECK_BETWEEN(matched.dk, .17, .33);
    CHECK(matched.row_sum < 1e-12);
    CHECK(stale.dq >= 5 * matched.dq);

    const errors consistent = measure<recipe::token, delta::consistent>("hard token consistent", c, truth);
    CHECK_BETWEEN(consistent.dq, .21, .43);
    CHECK_BETWEEN(consistent.dk, .17, .33);
    CHECK_BETWEEN(consistent.row_sum, 2e-3, 1.2e-2);

    attention_case residual = c;
    residual.p.o_residual = true;
    const errors whole = measure<recipe::token, delta::consistent>("hard token consistent, residual", residual, truth);
    CHECK_BETWEEN(whole.dq, .2, .40);
    CHECK(whole.dq < consistent.dq);
    CHECK(whole.row_sum < 5e-5);

    // BF16 as a recipe includes what rounding the inputs to BF16 costs: the truth here is that of the inputs before it.
    attention_case unrounded = c;
    unrounded.p.element = octavo::dtype::f32;
    const attention_result whole_truth = run<recipe::exact>(unrounded);
    const errors flash = measure<recipe::bf16, delta::stale>("hard bf16 stale", c, whole_truth);
    CHECK_BETWEEN(flash.o, .001, .004);
    CHECK_BETWEEN(flash.dq, .10, .26);
    CHECK_BETWEEN(flash.row_sum, 3e-3, 1.4e-2);
    const errors better = measure<recipe::bf16, delta::matched>("hard bf16 matched", c, whole_truth);
    CHECK_BETWEEN(better.dq, .012, .026);
    CHECK_BETWEEN(better.dk, .010, .020);
    CHECK(better.row_sum < 1e-12);
    CHECK(flash.dq >= 5 * better.dq);
  }
}

TEST_CASE("hard input with centred keys: what is left of the row sums multiplies nearly nothing") {
  for (const unsigned seed : {11u, 12u, 13u}) {
    CAPTURE(seed);
    attention_case c = make_case(seed, true);
    const attention_result truth = run<recipe::exact>(c);
    c.p.key_centring = octavo::key_centring::batch;
    c.p.o_residual = true;

    const errors stale = measure<recipe::token, delta::stale>("hard centred token stale", c, truth);
    CHECK_BETWEEN(stale.o, .006, .014);
    CHECK_BETWEEN(stale.dq, .14, .25);
    CHECK_BETWEEN(stale.row_sum, 4e-2, .16);
    const errors matched = measure<recipe::token, delta::matched>("hard centred token matched", c, truth);
    CHECK_BETWEEN(matched.dq, .08, .15);
    CHECK_BETWEEN(matched.dk, .08, .15);
    CHECK(matched.row_sum < 1e-12);
    const errors consistent =
        measure<recipe::token, delta::consistent>("hard centred token consistent, residual", c, truth);
    CHECK_BETWEEN(consistent.dq, .09, .15);
    CHECK(consistent.row_sum < 5e-5);
  }
}

TEST_CASE("power-of-two scales: mx32, token and tile give one error") {
  const attention_case c = make_case(14, true);
  const attention_result truth = run<recipe::exact>(c);
  const errors mx32 = measure<recipe::mx32, delta::matched>("hard mx32 matched", c, truth);
  const errors token = measure<recipe::token, delta::matched>("hard token matched", c, truth);
  const errors tile = measure<recipe::tile, delta::matched>("hard tile matched", c, truth);
  CHECK(std::fabs(token.dq - mx32.dq) < .02);
  CHECK(std::fabs(tile.dq - mx32.dq) < .02);
}

// The true dQ does not move. The stale error grows with the shift without bound; the matched one is that of keys whose
// rounding gets coarser; with centred keys nothing happens at all.
TEST_CASE("adding a constant to all keys") {
  const auto error = []<class Delta>(Delta, float shift, octavo::key_centring centring) {
    attention_case c;
    c.p.element = octavo::dtype::f32;
    c.p.s_q = c.p.s_kv = 256;
    fill_normal(c, 21);
    for (float& x : c.v) x += 3;
    for (float& x : c.k) x += shift;
    const attention_result truth = run<recipe::exact>(c);
    c.p.key_centring = centring;
    return relative_error(run<recipe::mx32, Delta>(c).dq, truth.dq);
  };
  const auto off = octavo::key_centring::off, batch = octavo::key_centring::batch;
  const double stale = error(delta::stale{}, 4, off), stale_far = error(delta::stale{}, 16, off);
  const double matched = error(delta::matched{}, 4, off), matched_far = error(delta::matched{}, 16, off);
  const double centred = error(delta::matched{}, 4, batch), centred_far = error(delta::matched{}, 16, batch);
  MESSAGE("dQ error for a shift of 4 and of 16: stale " << stale << ", " << stale_far << "; matched " << matched << ", "
                                                        << matched_far << "; matched and centred " << centred << ", "
                                                        << centred_far);
  CHECK(stale_far > 2.5 * stale);
  CHECK(matched < stale / 3);
  CHECK(matched_far < stale_far / 3);
  CHECK(std::fabs(centred_far - centred) < .05 * centred);
}

// A product that ignored whose scale it contracts would still be right on tokens of one size.
TEST_CASE("token magnitudes spread over 2^+-4") {
  attention_case c;
  c.p.s_q = c.p.s_kv = 512;
  c.p.mask.causal = octavo::causal_mask::top_left;
  fill_normal(c, 22);
  std::mt19937 random(23);
  std::uniform_real_distribution<float> exponent(-4, 4);
  for (numbers attention_case::* input : {&attention_case::v, &attention_case::dout})
    for (std::size_t row = 0; row < 512; ++row) {
      const float magnitude = std::exp2(exponent(random));
      for (std::size_t i = row * channels; i < (row + 1) * channels; ++i) (c.*input)[i] *= magnitude;
    }
  const attention_result truth = run<recipe::exact>(c);
  for (const errors& e : {measure<recipe::mx32, delta::matched>("spread mx32 matched", c, truth),
                          measure<recipe::token, delta::matched>("spread token matched", c, truth),
                          measure<recipe::token, delta::consistent>("spread token consistent", c, truth),
                          measure<recipe::tile, delta::consistent>("spread tile consistent", c, truth)}) {
    CHECK(e.o < .07);
    CHECK(e.dq < .10);
    CHECK(e.dk < .10);
    CHECK(e.dv < .08);
  }
}
