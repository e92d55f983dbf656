// SPDX-License-Identifier: Apache-2.0
// Scores at the ends of their range: all far below zero, a row maximum that rises from key tile to key tile, a few keys
// that take nearly all of the weight, and tensors of nothing but zeros. Each was a NaN or a shrunken O in some library.
#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

/// Q and K with a common direction that moves every score by about `nats`.
test_case with_scores_moved(const octavo::problem& p, float nats, unsigned seed) {
  test_case c = make_case(p, input_family::randn, seed);
  const float side = std::sqrt(std::fabs(nats) / p.scale());
  for (auto [x, sign] : {std::pair{&c.q, 1.0f}, std::pair{&c.k, nats < 0 ? -1.0f : 1.0f}})
    for (std::size_t i = 0; i < x->size(); ++i) {
      float& value = (*x)[i];
      value = i % static_cast<std::size_t>(p.d_qk) == 0 ? sign * side : 0.3f * value;
    }
  return c;
}

double largest_of(const floats& x) { return *std::max_element(x.begin(), x.end()); }

}  // namespace

// A padded key that counts as a score of 0 would hold all of the weight here, and exp(0 - LSE) is infinite below -88.7.
TEST_CASE("field: LSE far below zero at lengths that end inside a tile") {
  for (const std::int64_t s : {64, 192, 320, 704})
    for (const std::int64_t d : {32, 64, 128}) {
      if (s > 192 && d > 32) continue;  // the reference is float64: one long row of each is enough
      CAPTURE(s);
      CAPTURE(d);
      const octavo::problem p{.s_q = std::min<std::int64_t>(s, 192),
                              .s_kv = s,
                              .d_qk = d,
                              .d_v = d,
                              .mask = {octavo::causal_mask::bottom_right}};
      const test_case c = with_scores_moved(p, -130, 111);
      const results truth = exact(c);
      for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched", "consistent"}},
                      [&](const candidate& on) { CHECK(largest_of(as_accurate_as_r8(on, c, truth).lse) < -88.7); });
    }
}

TEST_CASE("field: one query, all scores far from zero") {
  for (const std::int64_t s : {1, 97, 127, 128, 129, 200})
    for (const float nats : {-300.0f, -125.0f, 125.0f, 300.0f}) {
      CAPTURE(s);
      CAPTURE(nats);
      const octavo::problem p{.h_q = 2, .s_q = 1, .s_kv = s};
      const test_case c = with_scores_moved(p, nats, 112);
      const results truth = exact(c);
      for_each_engine(p, {.recipes = {"token", "mx32"}}, [&](const candidate& on) {
        // Of a single row, a policy that reads a rounded O makes a dQ whose error is luck: finite is all to ask of it.
        const results r = on.reads_o() ? finite_run(on, c) : as_accurate_as_r8(on, c, truth);
        CHECK(all_finite(r.lse));
        CHECK(std::fabs(r.lse[0] / nats - 1) < 0.2);
      });
    }
}

// O of values that are all one is one: l is the sum of the very P^ that weigh V. Were P to saturate where the maximum
// rises late, l would count what O has not.
TEST_CASE("field: a row maximum that rises across key tiles") {
  for (const std::int64_t s : {256, 600})
    for (const float rise : {0.0f, 1.0f, 2.5f, 4.0f, 30.0f})
      for (const float peak : {0.0f, 6.0f}) {
        CAPTURE(s);
        CAPTURE(rise);
        CAPTURE(peak);
        const octavo::problem p{.s_q = 40, .s_kv = s, .d_qk = 32, .d_v = 32};
        test_case c = make_case(p, input_family::randn, 113);
        multiply(c.q, 0.1f);
        for_tokens(c.q, c.q_side(p.d_qk), 0, p.s_q, [&](auto row, std::int64_t) { row[0] = 1 / p.scale(); });
        for_tokens(c.k, c.kv_side(p.d_qk), 0, s, [&](auto key, std::int64_t j) {
          const float log2_units = rise * static_cast<float>(j) / static_cast<float>(s) + (j % 128 == 127 ? peak : 0);
          key[0] = log2_units * 0.6931f;
        });
        test_case ones = c;
        std::fill(ones.v.begin(), ones.v.end(), 1.0f);
        ones.backward = false;
        for_each_engine(p, {.recipes = {"token", "tile"}}, [&](const candidate& on) {
          // Where M rises, a forward in steps shorter than a tile keeps weights that the final M lets underflow, which
          // the consistent backward then lacks: R8 knows the final M alone.
          const bool short_steps = on.backend.name.starts_with("sim-hip") && on.engine.delta == "consistent";
          if (short_steps)
            as_accurate_as_r8(on, c, exact(c));
          else
            judged(on, c, {.o_in_f32 = true});  // in BF16 a flipped bit of O would move the consistent delta
          const floats o = on(ones, {.o_in_f32 = true}).o;
          // stale sums l before P is rounded, as other libraries do: one mantissa step of E4M3 at most
          const double allowed = on.engine.delta == "stale" ? 0x1p-4 : 1e-6;
          CHECK(largest_difference(o, floats(o.size(), 1.0f)) < allowed);
        });
      }
}

// Sink tokens: four keys above all others by a margin. Read first they push the rest towards underflow, read last they
// do not; neither may cost accuracy.
TEST_CASE("field: sink keys, met first or last") {
  const octavo::problem p{.s_q = 32, .s_kv = 512, .d_qk = 32, .d_v = 32};
  for (const float margin : {6.0f, 8.0f, 10.0f, 12.0f, 14.0f}) {
    CAPTURE(margin);
    const auto with_sinks = [&](std::int64_t first) {
      test_case c = make_case(p, input_family::randn, 114);
      multiply(c.q, 0.2f);
      for_tokens(c.q, c.q_side(p.d_qk), 0, p.s_q, [&](auto row, std::int64_t) { row[0] = 1 / p.scale(); });
      for_tokens(c.k, c.kv_side(p.d_qk), 0, p.s_kv,
                 [&](auto key, std::int64_t j) { key[0] = j >= first && j < first + 4 ? margin : 0; });
      c.backward = false;
      return c;
    };
    const test_case early = with_sinks(0), late = with_sinks(p.s_kv - 4);
    const floats early_truth = exact(early).o, late_truth = exact(late).o;
    for_each_engine(p, {.recipes = {"token", "tile", "mx32"}, .deltas = {"matched"}}, [&](const candidate& on) {
      const double first = relative_error(on(early, {.o_in_f32 = true}).o, early_truth);
      const double last = relative_error(on(late, {.o_in_f32 = true}).o, late_truth);
      CHECK(first < 0.05);
      CHECK(last < 0.05);
    });
  }
}

TEST_CASE("field: zeros give zeros, not NaN") {
  const octavo::problem p{.h_q = 2, .s_q = 140, .s_kv = 150, .d_qk = 32, .d_v = 32};
  const test_case c = make_case(p, input_family::randn, 115);
  const auto zeroed = [&](floats test_case::* field, std::int64_t first, std::int64_t last) {
    test_case x = c;
    const tensor_shape shape = field == &test_case::q || field == &test_case::dout ? c.q_side(32) : c.kv_side(32);
    for_tokens(x.*field, shape, first, std::min(last, shape.s),
               [](auto values, std::int64_t) { std::fill(values.begin(), values.end(), 0.0f); });
    return x;
  };
  for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor", "bf16"}}, [&](const candidate& on) {
    const results no_dout = judged(on, zeroed(&test_case::dout, 0, 1000));
    CHECK(all_zero(no_dout.dq));
    CHECK(all_zero(no_dout.dk));
    CHECK(all_zero(no_dout.dv));
    const results no_v = judged(on, zeroed(&test_case::v, 0, 1000));
    CHECK(all_zero(no_v.o));
    CHECK(all_zero(no_v.dq));
    CHECK(all_zero(no_v.dk));
    CHECK(all_zero(judged(on, zeroed(&test_case::k, 0, 1000)).dq));
    CHECK(all_zero(judged(on, zeroed(&test_case::q, 0, 1000)).dk));
    // One tile, one block, one row of zeros among others.
    for (const auto& [first, last] : {std::pair{0, 128}, std::pair{32, 64}, std::pair{7, 8}}) {
      // Zero tokens have scale 1, far above the others'. With `token` P takes both in, and what underflows depends on the
      // run of queries that shares a scale, as with spread tokens.
      const results rows = judged(on, zeroed(&test_case::dout, first, last), {}, input_family::token_spread);
      CHECK(all_zero(tokens(rows.dq, c.q_side(32), first, last)));
      for (const auto field : {&test_case::q, &test_case::k, &test_case::v}) judged(on, zeroed(field, first, last));
    }
  });
}
