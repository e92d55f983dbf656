// SPDX-License-Identifier: Apache-2.0
// Rows without keys, documents without rows, and memory behind the last row. What is not there must have no effect: no
// NaN from 0 * NaN, no mean of V from a finite "minus infinity", no garbage where nothing was computed, no say in a
// scale.
#include <limits>

#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left, bottom_right = octavo::causal_mask::bottom_right;
constexpr auto no_mask = octavo::causal_mask::none;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

void set(floats& x, const tensor_shape& shape, std::int64_t first, std::int64_t last, float value) {
  for_tokens(x, shape, first, last, [=](auto values, std::int64_t) { std::fill(values.begin(), values.end(), value); });
}

}  // namespace

TEST_CASE("field: rows that see no key") {
  const octavo::problem p{.h_q = 2, .s_q = 90, .s_kv = 33, .d_qk = 64, .d_v = 64, .mask = {bottom_right}};
  constexpr std::int64_t blind = 90 - 33;
  const test_case c = make_case(p, input_family::key_bias_value_mode, 121);
  test_case seeing = c;  // the rows that see something, alone
  seeing.p.s_q = p.s_kv;
  seeing.q = tokens(c.q, c.q_side(64), blind, 90), seeing.dout = tokens(c.dout, c.q_side(64), blind, 90);
  for_each_engine(p, {.recipes = {"token", "bf16"}}, [&](const candidate& on) {
    const results r = on(c), alone = on(seeing);
    CHECK(all_zero(tokens(r.o, c.q_side(64), 0, blind)));
    CHECK(all_zero(tokens(r.dq, c.q_side(64), 0, blind)));
    for (const float lse : tokens(r.lse, statistics_shape(c), 0, blind))
      CHECK(lse == -std::numeric_limits<float>::infinity());
    CHECK(identical(tokens(r.o, c.q_side(64), blind, 90), alone.o));
    CHECK(relative_error(tokens(r.dq, c.q_side(64), blind, 90), alone.dq) < 1e-5);
    CHECK(relative_error(r.dk, alone.dk) < 2e-3);  // other rows share a scale of dS
    CHECK(relative_error(r.dv, alone.dv) < 2e-3);
  });
}

TEST_CASE("field: documents without queries, without keys, without either") {
  octavo::problem p{.b = 4,
                    .h_q = 4,
                    .h_kv = 2,
                    .s_q = 70,
                    .s_kv = 70,
                    .d_qk = 64,
                    .d_v = 64,
                    .packed = true,
                    .total_q = 110,
                    .total_kv = 120};
  const offsets cu_q{0, 40, 40, 110, 110}, cu_kv{0, 50, 120, 120, 120};
  for (const auto causal : {no_mask, top_left, bottom_right}) {
    p.mask.causal = causal;
    const test_case c = make_case(p, input_family::randn, 122, cu_q, cu_kv);
    const results truth = exact(c);
    for_each_engine(p, {.recipes = {"mx32", "token", "tile"}}, [&](const candidate& on) {
      const results r = as_accurate_as_r8(on, c, truth);
      CHECK(all_zero(tokens(r.dk, c.kv_side(64), 50, 120)));
      CHECK(all_zero(tokens(r.dv, c.kv_side(64), 50, 120)));
      CHECK(all_zero(tokens(r.o, c.q_side(64), 40, 110)));
      CHECK(all_zero(tokens(r.dq, c.q_side(64), 40, 110)));
    });
  }
}

TEST_CASE("field: nothing at all, and much of nothing in a row") {
  const octavo::problem no_keys{.b = 2, .s_q = 5, .s_kv = 0, .d_qk = 64, .d_v = 64};
  const octavo::problem no_rows{
      .b = 3, .s_q = 0, .s_kv = 9, .d_qk = 64, .d_v = 64, .packed = true, .total_q = 0, .total_kv = 9};
  // 700 empty documents before and between two that are not; and rows whose window lies many tiles behind the first
  // key.
  octavo::problem sparse{
      .b = 1402, .s_q = 6, .s_kv = 6, .d_qk = 64, .d_v = 64, .packed = true, .total_q = 9, .total_kv = 9};
  offsets cu(1403, 9);
  std::fill(cu.begin(), cu.begin() + 701, 0);
  std::fill(cu.begin() + 701, cu.begin() + 1402, 4);
  octavo::problem far{.s_q = 3, .s_kv = 1500, .d_qk = 64, .d_v = 64, .mask = {bottom_right, 2}};
  const test_case cases[] = {make_case(no_keys, input_family::randn, 123),
                             make_case(no_rows, input_family::randn, 123, {0, 0, 0, 0}, {0, 4, 9, 9}),
                             make_case(sparse, input_family::randn, 123, cu, cu),
                             make_case(far, input_family::randn, 123)};
  for (const test_case& c : cases)
    for_each_engine(c.p, {.recipes = {"mx32", "token", "tile"}, .deltas = {"matched"}},
                    [&](const candidate& on) { judged(on, c); });
}

TEST_CASE("field: rows behind the last offset have gradients of zero, whatever they hold") {
  const octavo::problem p{.b = 3,
                          .h_q = 2,
                          .h_kv = 2,
                          .s_q = 122,
                          .s_kv = 122,
                          .d_qk = 64,
                          .d_v = 64,
                          .mask = {top_left},
                          .packed = true,
                          .total_q = 238,
                          .total_kv = 238};
  const offsets cu{0, 36, 108, 230};
  const test_case clean = make_case(p, input_family::randn, 124, cu, cu);
  test_case c = clean;
  for (const auto field : {&test_case::q, &test_case::k, &test_case::v, &test_case::dout})
    set(c.*field, c.q_side(64), 230, 238, not_a_number);
  for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor", "bf16"}}, [&](const candidate& on) {
    const results r = on(c), without = on(clean);
    for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv}) {
      CHECK(all_zero(tokens(r.*field, c.kv_side(64), 230, 238)));
      CHECK(all_finite(r.*field));
      CHECK(relative_error(r.*field, without.*field) < 1e-5);
    }
  });
}

// Keys that no row sees (a cache that is longer than what is used) may hold anything, NaN bytes of FP8 among it.
TEST_CASE("field: NaN in keys that no row sees") {
  const octavo::problem p{.b = 2, .h_q = 2, .s_q = 32, .s_kv = 128, .d_qk = 64, .d_v = 64, .mask = {top_left}};
  for (const std::int64_t used : {32, 48, 64, 96}) {
    CAPTURE(used);
    test_case clean = make_case(p, input_family::randn, 125);
    clean.p.mask.window_right = -1;
    clean.p.shard = {used - 32, 0, used, 128};  // the last 32 of `used` queries
    for_each_engine(clean.p, {}, [&](const candidate& on) {
      const results want = on(clean);
      for (const int where : {1, 2, 3}) {  // K, V, both
        CAPTURE(where);
        test_case c = clean;
        if (where & 1) set(c.k, c.kv_side(64), used, 128, not_a_number);
        if (where & 2) set(c.v, c.kv_side(64), used, 128, not_a_number);
        const results r = on(c);
        for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv}) {
          CHECK(all_finite(r.*field));
          // A NaN has no part in an amax, so that a scale which it shares with others may change.
          CHECK(relative_error(r.*field, want.*field) < (on.is("tile") || on.is("mx32") ? 2e-2 : 1e-5));
        }
        CHECK(all_zero(tokens(r.dk, c.kv_side(64), used, 128)));
        CHECK(all_zero(tokens(r.dv, c.kv_side(64), used, 128)));
      }
    });
  }
}

TEST_CASE("field: NaN bytes in payloads behind the mask") {
  octavo::problem p{.h_q = 2,
                    .s_q = 40,
                    .s_kv = 100,
                    .d_qk = 64,
                    .d_v = 64,
                    .mask = {top_left},
                    .save_payloads = true,
                    .deterministic = true};
  const test_case saving = make_case(p, input_family::randn, 126);
  for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    const results made = on(saving);
    test_case c = saving;
    c.p.save_payloads = false, c.p.payload_inputs = true;
    c.payloads = made.payloads;
    for (payload* x : {&c.payloads.k, &c.payloads.v})
      std::fill(x->rowwise.begin() + 40 * 64, x->rowwise.end(), std::uint8_t{0x7f});
    const results r = on(c);
    for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv})
      CHECK(identical(r.*field, made.*field));
  });
}

// Alignment padding between documents is made of documents of its own, which nobody mixes with the real ones.
TEST_CASE("field: padding between documents influences nothing") {
  const octavo::problem p{.b = 4,
                          .h_q = 2,
                          .h_kv = 2,
                          .s_q = 77,
                          .s_kv = 77,
                          .d_qk = 64,
                          .d_v = 64,
                          .packed = true,
                          .total_q = 160,
                          .total_kv = 160,
                          .deterministic = true};
  const offsets cu{0, 29, 64, 141, 160};  // documents 1 and 3 are padding up to multiples of 32
  const test_case c = make_case(p, input_family::randn, 127, cu, cu);
  test_case other = c;
  for (const auto field : {&test_case::q, &test_case::k, &test_case::v, &test_case::dout})
    for (const auto& [first, last] : {std::pair{29, 64}, std::pair{141, 160}})
      for_tokens(other.*field, c.q_side(64), first, last, [](auto values, std::int64_t) {
        for (float& x : values) x = 90 * (x + 0.3f);
      });
  for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor"}}, [&](const candidate& on) {
    const results x = on(c), y = on(other);
    for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv})
      for (const auto& [first, last] : {std::pair{0, 29}, std::pair{64, 141}})
        CHECK(identical(tokens(x.*field, c.q_side(64), first, last), tokens(y.*field, c.q_side(64), first, last)));
  });
}

TEST_CASE("field: windows, edge by edge") {
  for (const std::int64_t left : {-1, 0, 1, 31, 32, 64, 128})
    for (const std::int64_t right : {-1, 0, 1, 64, 127}) {
      CAPTURE(left);
      CAPTURE(right);
      const octavo::problem p{.s_q = 129, .s_kv = 129, .d_qk = 64, .d_v = 64, .mask = {no_mask, left, right}};
      const test_case c = make_case(p, input_family::randn, 128);
      const results truth = exact(c);
      for_each_engine(p, {.recipes = {"token"}, .deltas = {"matched"}},
                      [&](const candidate& on) { as_accurate_as_r8(on, c, truth); });
    }
}
