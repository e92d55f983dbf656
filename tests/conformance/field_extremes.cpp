// SPDX-License-Identifier: Apache-2.0
// Finite numbers so large or small that a product of two leaves FP32, and rows whose only fault is elsewhere: results
// that the mask, or the mathematics, keeps apart from them stay finite and right.
#include <limits>

#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left, bottom_right = octavo::causal_mask::bottom_right;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

octavo::problem causal(std::int64_t s, std::int64_t d) {
  return {.s_q = s, .s_kv = s, .d_qk = d, .d_v = d, .element = octavo::dtype::f32, .mask = {top_left}};
}

void set(floats& x, const tensor_shape& shape, std::int64_t token, float value) {
  for_tokens(x, shape, token, token + 1, [=](auto values, std::int64_t) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? value : -value;
  });
}

}  // namespace

// Finite payloads behind the mask whose product with dO overflows: 0 * infinity must not reach rows before them.
TEST_CASE("field: a huge value behind the mask") {
  for (const std::int64_t d : {32, 64}) {
    const octavo::problem p = causal(150, d);
    test_case c = make_case(p, input_family::randn, 181);
    set(c.v, c.kv_side(d), 149, 1e30f);
    multiply(c.dout, 1e12f);
    for_each_engine(p, {.recipes = {"token"}}, [&](const candidate& on) {
      CAPTURE(d);
      const results r = on(c);
      CHECK(all_finite(tokens(r.dq, c.q_side(d), 0, 149)));
      CHECK(all_finite(tokens(r.o, c.q_side(d), 0, 149)));
      for (std::size_t i = 0; i < 149; ++i) CHECK(std::isfinite(r.l1[i]));
    });
  }
}

// A row without keys has no gradient, whatever its dO holds.
TEST_CASE("field: NaN in dO of a row that sees no key") {
  for (const std::int64_t d : {32, 64}) {
    octavo::problem p = causal(150, d);
    p.s_kv = 90, p.mask = {bottom_right};
    test_case c = make_case(p, input_family::randn, 182);
    c.dout[static_cast<std::size_t>(5 * d)] = not_a_number;
    for_each_engine(p, {.recipes = {"token", "tile"}}, [&](const candidate& on) {
      CAPTURE(d);
      const results r = on(c);
      for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv}) CHECK(all_finite(r.*field));
    });
  }
}

// A scale of a caller's payload that is NaN is a NaN in each of its tokens.
TEST_CASE("field: a NaN scale in a payload") {
  for (const std::int64_t d : {32, 64}) {
    octavo::problem p = causal(130, d);
    p.save_payloads = true;
    const test_case saving = make_case(p, input_family::randn, 183);
    for (payload payload_set::* of : {&payload_set::q, &payload_set::k, &payload_set::v})
      for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
        CAPTURE(d);
        test_case c = saving;
        c.p.save_payloads = false, c.p.payload_inputs = true;
        c.payloads = on(saving).payloads;
        const bool per_token = on.engine.recipe == "token";
        (c.payloads.*of).rowwise_scale[per_token ? 70 : 1] = 0xff;
        const std::int64_t first = per_token ? 70 : 128;  // the first row that it concerns
        const results r = on(c);
        for (const auto field : {&results::o, &results::dq}) {
          CHECK(all_finite(tokens(r.*field, c.q_side(d), 0, first)));
          CHECK_FALSE(all_finite(tokens(r.*field, c.q_side(d), first, first + 1)));
        }
      });
  }
}

// Scores of a million: weights of 0 and 1, which a maximum and an exponential that round differently would lose.
TEST_CASE("field: a softmax scale that makes scores large") {
  for (const std::int64_t d : {32, 64})
    for (const float scale : {1e3f, 1e5f}) {
      octavo::problem p = causal(100, d);
      p.softmax_scale = scale;
      const test_case c = make_case(p, input_family::randn, 184);
      for_each_engine(p, {.recipes = {"token", "tile"}}, [&](const candidate& on) {
        CAPTURE(d);
        CAPTURE(scale);
        const results got = finite_run(on, c), r8 = r8_of(on, c);
        // Which of two nearly equal scores is larger is decided by their last bits, in few rows.
        CHECK(relative_error(got.o, r8.o) < 0.2);
        CHECK(relative_error(got.dv, r8.dv) < 0.2);
      });
    }
}

// Gradients far below 1, as a loss that is averaged over many tokens has them.
TEST_CASE("field: tiny gradients keep their digits") {
  for (const std::int64_t d : {32, 64})
    for (const float size : {1e-12f, 1e-24f}) {
      const octavo::problem p = causal(100, d);
      test_case c = make_case(p, input_family::randn, 185);
      multiply(c.dout, size);
      for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
        CAPTURE(d);
        CAPTURE(size);
        const results got = finite_run(on, c), r8 = r8_of(on, c);
        CHECK(relative_error(got.dv, r8.dv) < 2e-2);
        CHECK(relative_error(got.dq, r8.dq) < 4e-2);
        CHECK(relative_error(got.dk, r8.dk) < 4e-2);
      });
    }
}

// A window whose last row of a group begins where a whole tile begins: its shift c is found there.
TEST_CASE("field: the shift of delta where rows begin with a tile") {
  octavo::problem p = causal(512, 64);
  p.mask.window_left = 191;
  test_case c = make_case(p, input_family::randn, 186);
  for (float& x : c.v) x += 100;
  for_each_engine(p, {.recipes = {"tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
    const results r = on(c);
    for (std::size_t i = 1; i < r.l1.size(); ++i) CHECK(std::fabs(r.row_sum[i]) <= 2e-6f * r.l1[i]);
  });
}
