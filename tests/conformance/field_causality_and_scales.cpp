// SPDX-License-Identifier: Apache-2.0
// What other libraries got wrong in the field about the future and about scales: block scales that let later tokens in,
// planes padded together so that the second batch read the first one's scales, lengths refused or spoilt because they
// are no multiple of a block. Each test is a sweep around the input that was reported.
#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left;
const std::vector<std::string_view> fp8_recipes{"mx32", "token", "tile", "tensor"};

}  // namespace

// One tensor at a time, with the present at the edges of vectors, blocks and tiles.
TEST_CASE("field: a later token of any one tensor, at any place") {
  const octavo::problem p{.s_q = 160, .s_kv = 160, .d_qk = 64, .d_v = 64, .mask = {top_left}, .deterministic = true};
  const test_case c = make_case(p, input_family::token_spread, 101);
  for_each_engine(p, {.recipes = {"token"}}, [&](const candidate& on) {
    const results before = on(c);
    for (const std::int64_t now : {1, 31, 32, 64, 127, 128, 129, 159})
      for (const auto field : {&test_case::q, &test_case::k, &test_case::v, &test_case::dout}) {
        CAPTURE(now);
        test_case other = c;
        const tensor_shape shape = c.q_side(p.d_qk);  // all four have it
        for_tokens(other.*field, shape, now, p.s_q, [](auto values, std::int64_t) {
          for (float& x : values) x = 1000 * (0.5f - x);
        });
        const results after = on(other);
        CHECK(identical(tokens(after.o, shape, 0, now), tokens(before.o, shape, 0, now)));
        CHECK(identical(tokens(after.dq, shape, 0, now), tokens(before.dq, shape, 0, now)));
      }
  });
}

// The last block of batch 0 is short; were blocks counted over the flattened b * s, batch 1 would begin inside it.
TEST_CASE("field: the second batch has scales of its own") {
  for (const std::int64_t s : {16, 17, 33, 129}) {
    CAPTURE(s);
    const octavo::problem p{
        .b = 2, .h_q = 2, .h_kv = 2, .s_q = s, .s_kv = s, .d_qk = 64, .d_v = 64, .deterministic = true};
    const test_case both = make_case(p, input_family::token_spread, 102);
    test_case second = both;
    second.p.b = 1;
    for (const auto field : {&test_case::q, &test_case::k, &test_case::v, &test_case::dout})
      (second.*field).erase((second.*field).begin(), (second.*field).begin() + s * p.h_q * p.d_qk);
    for_each_engine(p, {.recipes = fp8_recipes}, [&](const candidate& on) {
      const results x = on(both), y = on(second);
      const auto last = [](const floats& values, const floats& like) { return std::span(values).last(like.size()); };
      CHECK(identical(last(x.o, y.o), y.o));
      CHECK(identical(last(x.lse, y.lse), y.lse));
      CHECK(identical(last(x.dq, y.dq), y.dq));
      CHECK(identical(last(x.dk, y.dk), y.dk));
      CHECK(identical(last(x.dv, y.dv), y.dv));
    });
  }
}

namespace {

template <class Wanted>
void check_lengths_of_16_modulo_32(Wanted wanted) {
  for (const std::int64_t s : {16, 48, 144, 240}) {
    CAPTURE(s);
    const octavo::problem p{.s_q = s, .s_kv = s, .d_qk = 64, .d_v = 64, .mask = {top_left}};
    const test_case c = make_case(p, input_family::outliers, 103);
    const results truth = exact(c);
    for_each_engine(p, {.recipes = fp8_recipes, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
      if (wanted(on)) as_accurate_as_r8(on, c, truth);
    });
  }
}

}  // namespace

TEST_CASE("field: lengths that are 16 modulo 32") {
  check_lengths_of_16_modulo_32([](const candidate&) { return true; });
}

// What a card computes, where there is none.
TEST_CASE("field: lengths that are 16 modulo 32, with the sums of the unit that is simulated") {
  const unit_sums_of_simulators as_the_unit;
  check_lengths_of_16_modulo_32([](const candidate& on) { return on.backend.simulation.set_accumulator != nullptr; });
}

// The payload and scales of a tail block are those of its rows quantised alone: neither the rows before nor whatever
// lies behind the last one has a say.
TEST_CASE("field: a tail block is scaled from its valid rows") {
  constexpr std::int64_t body = 128, tail = 17;
  octavo::problem p{.s_q = 4, .s_kv = body + tail, .d_qk = 64, .d_v = 64, .save_payloads = true};
  test_case c = make_case(p, input_family::randn, 104);
  c.backward = false;
  for_tokens(c.v, c.kv_side(p.d_v), 0, body, [](auto values, std::int64_t) {
    for (float& x : values) x *= 300;
  });
  test_case alone = c;
  alone.p.s_kv = tail;
  alone.k = tokens(c.k, c.kv_side(p.d_qk), body, body + tail);
  alone.v = tokens(c.v, c.kv_side(p.d_v), body, body + tail);
  for_each_engine(p, {.recipes = {"mx32", "token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
    const payload whole = on(c).payloads.v, part = on(alone).payloads.v;
    const auto ends_with = [](const auto& x, const auto& y) { return std::equal(y.rbegin(), y.rend(), x.rbegin()); };
    CHECK(ends_with(whole.rowwise, part.rowwise));
    CHECK(ends_with(whole.rowwise_scale, part.rowwise_scale));
    CHECK(ends_with(whole.columnwise, part.columnwise));
    CHECK(ends_with(whole.columnwise_scale, part.columnwise_scale));
  });
}
