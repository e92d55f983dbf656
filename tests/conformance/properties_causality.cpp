// SPDX-License-Identifier: Apache-2.0
// Under a causal mask nothing that happens later may reach an earlier row, its rounding included. `token` and `bf16`
// keep that to the last bit: no scale of a row depends on a later token. `tile` and `mx32` share scales among tokens
// and do leak; that they are seen to leak here is what makes the test trustworthy.
#include <limits>

#include "support/inputs.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;

namespace {

constexpr std::int64_t length = 192, now = 101;  // inside a tile, a block of 32 and a vector

octavo::problem causal() {
  return {.h_q = 2,
          .s_q = length,
          .s_kv = length,
          .d_qk = 64,
          .d_v = 64,
          .mask = {octavo::causal_mask::top_left},
          .deterministic = true};
}

void change(floats& x, const tensor_shape& shape, std::int64_t first, float factor) {
  for_tokens(x, shape, first, shape.s, [=](auto values, std::int64_t token) {
    for (std::size_t c = 0; c < values.size(); ++c)
      values[c] = factor * (values[c] + static_cast<float>((c + static_cast<std::size_t>(token)) % 7));
  });
}

/// c with all tensors changed from token `now` on.
test_case other_future(test_case c, float factor) {
  change(c.q, c.q_side(c.p.d_qk), now, factor);
  change(c.k, c.kv_side(c.p.d_qk), now, factor);
  change(c.v, c.kv_side(c.p.d_v), now, factor);
  change(c.dout, c.q_side(c.p.d_v), now, factor);
  return c;
}

/// Whether the rows before `now` are the same to the last bit.
bool same_past(const test_case& c, const results& x, const results& y, bool gradients = true) {
  const auto same = [&](const floats& a, const floats& b, const tensor_shape& shape) {
    return identical(tokens(a, shape, 0, now), tokens(b, shape, 0, now));
  };
  return same(x.o, y.o, c.q_side(c.p.d_v)) && same(x.lse, y.lse, statistics_shape(c)) &&
         (!gradients || same(x.dq, y.dq, c.q_side(c.p.d_qk)));
}

}  // namespace

TEST_CASE("causality: earlier rows do not see another future") {
  const test_case c = make_case(causal(), input_family::token_spread, 21);
  for_each_engine(c.p, {.recipes = {"token", "bf16"}}, [&](const candidate& on) {
    const results before = on(c);
    for (const float factor : {1.0f, 0x1p-9f, 0x1p12f}) {
      CAPTURE(factor);
      CHECK(same_past(c, before, on(other_future(c, factor))));
    }
  });
}

TEST_CASE("causality: a huge value behind the mask changes nothing") {
  test_case c = make_case(causal(), input_family::randn, 22);
  c.p.element = octavo::dtype::f32;
  for_each_engine(c.p, {.recipes = {"token", "bf16"}}, [&](const candidate& on) {
    const results before = on(c);
    test_case huge = c;
    for_tokens(huge.v, c.kv_side(c.p.d_v), now, now + 1, [](auto values, std::int64_t) { values[3] = 1e30f; });
    CHECK(same_past(c, before, on(huge)));
  });
}

TEST_CASE("causality: neither does a NaN or an infinity") {
  const test_case c = make_case(causal(), input_family::randn, 23);
  for_each_engine(c.p, {.recipes = {"token", "bf16"}}, [&](const candidate& on) {
    const results before = on(c);
    for (const float wrong : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      CAPTURE(wrong);
      test_case spoilt = c;
      const auto spoil = [&](floats& x, const tensor_shape& shape) {
        for_tokens(x, shape, now, length, [=](auto values, std::int64_t token) {
          values[static_cast<std::size_t>(token) % values.size()] = wrong;
        });
      };
      spoil(spoilt.q, c.q_side(c.p.d_qk)), spoil(spoilt.k, c.kv_side(c.p.d_qk));
      spoil(spoilt.v, c.kv_side(c.p.d_v)), spoil(spoilt.dout, c.q_side(c.p.d_v));
      CHECK(same_past(c, before, on(spoilt)));
    }
  });
}

// A key shift that was fixed before the step is causal, the mean of the batch is not.
TEST_CASE("causality: a given key shift keeps it") {
  octavo::problem p = causal();
  p.key_centring = octavo::key_centring::given;
  const test_case c = make_case(p, input_family::randn, 24);
  for_each_engine(p, {.recipes = {"token", "bf16"}, .deltas = {"matched"}},
                  [&](const candidate& on) { CHECK(same_past(c, on(c), on(other_future(c, 5)))); });
}

TEST_CASE("causality: shared scales leak, and this test can tell") {
  const test_case c = make_case(causal(), input_family::token_spread, 25);
  for_each_engine(c.p, {.recipes = {"tile", "mx32"}},
                  [&](const candidate& on) { CHECK_FALSE(same_past(c, on(c), on(other_future(c, 0x1p9f)))); });
}
