// SPDX-License-Identifier: Apache-2.0
// Shapes and options that fused kernels were reported to get wrong: lengths that are no multiple of a tile, queries and
// keys of different lengths, one of everything, a scale taken after padding, sinks, zigzag chunks of a context-parallel
// job.
#include <limits>

#include "support/judged.hpp"
#include "support/split_run.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left, bottom_right = octavo::causal_mask::bottom_right;
constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("field: lengths around tiles, equal and not") {
  struct extents {
    std::int64_t s_q, s_kv, d;
  };
  for (const auto& [s_q, s_kv, d] : {extents{64, 64, 128},
                                     {127, 127, 32},
                                     {129, 129, 32},
                                     {1000, 100, 32},
                                     {40, 1000, 32},
                                     {5, 4097, 32},
                                     {256, 128, 32},
                                     {100, 257, 32}})
    for (const auto causal : {octavo::causal_mask::none, top_left, bottom_right}) {
      CAPTURE(s_q);
      CAPTURE(s_kv);
      const octavo::problem p{.s_q = s_q, .s_kv = s_kv, .d_qk = d, .d_v = d, .mask = {causal}};
      const test_case c = make_case(p, input_family::randn, 131);
      const results truth = exact(c);
      for_each_engine(p, {.recipes = {"token", "mx32"}, .deltas = {"matched"}},
                      [&](const candidate& on) { as_accurate_as_r8(on, c, truth); });
    }
}

TEST_CASE("field: one of everything") {
  for (const octavo::dtype type : {octavo::dtype::f16, octavo::dtype::bf16, octavo::dtype::f32}) {
    const octavo::problem p{.s_q = 1, .s_kv = 1, .d_qk = 32, .d_v = 32, .element = type};
    const test_case c = make_case(p, input_family::randn, 132);
    for_each_engine(p, {}, [&](const candidate& on) {
      const results r = finite_run(on, c);
      CHECK(all_finite(r.lse));
      CHECK(relative_error(r.o, c.v) < 0x1p-4);
      CHECK(relative_error(r.dv, c.dout) < 0x1p-3);  // P may be a step of E4M3 away from l, and dO is rounded
      if (on.engine.delta == "matched") CHECK(norm(r.dq) <= 1e-5 * norm(c.dout) * norm(c.v) * norm(c.k));
    });
  }
  // d = 16 is no head dimension here: refused in words, and never padded in silence.
  octavo::problem narrow{.s_q = 1, .s_kv = 1, .d_qk = 16, .d_v = 16};
  for (const octavo::backend_entry& entry : octavo::all_backends())
    if (const octavo::engine* e = entry.compiled ? entry.find("token", "matched", false) : nullptr) {
      const octavo::support s = e->supports(narrow);
      CHECK_FALSE(s.ok);
      CHECK(s.reason.view().find("16") != std::string_view::npos);
    }
}

TEST_CASE("field: the default scale is that of d, however a kernel pads") {
  for (const std::int64_t d : {96, 192}) {
    const octavo::problem p{.s_q = 40, .s_kv = 50, .d_qk = d, .d_v = 32};
    const test_case c = make_case(p, input_family::randn, 133);
    test_case told = c;
    told.p.softmax_scale = 1 / std::sqrt(static_cast<float>(d));
    for_each_engine(p, {.recipes = {"mx32", "token"}, .deltas = {"matched"}}, [&](const candidate& on) {
      const results x = on(c), y = on(told);
      // Not to the last bit: a backend may take the root in float64. Of d padded to 128 it would be off by a seventh.
      CHECK(relative_error(x.lse, y.lse) < 1e-3);
      CHECK(relative_error(x.dq, y.dq) < 1e-3);
      CHECK(relative_error(x.dk, y.dk) < 1e-3);
    });
  }
}

TEST_CASE("field: sinks against float64, with rows of few keys and of none") {
  const octavo::problem p{
      .b = 2, .h_q = 4, .h_kv = 2, .s_q = 9, .s_kv = 6, .d_qk = 32, .d_v = 32, .mask = {bottom_right}, .sink = true};
  test_case c = make_case(p, input_family::randn, 134);
  c.sink = {-2, 0.5f, 3, 30};
  const results truth = exact(c);
  for_each_engine(p, {}, [&](const candidate& on) {
    const results r = as_accurate_as_r8(on, c, truth);
    CHECK(relative_error(r.dsink, truth.dsink) < 0.25);  // 54 rows: of FP8, not of the sink
    CHECK(largest_difference(r.lse, truth.lse) < 0.2);
    if (on.engine.delta == "matched") CHECK(row_sum_ratio(r.row_sum, r.l1) <= 1e-5);
    for (std::size_t row = 0; row < 3; ++row) CHECK(r.lse[row] == doctest::Approx(-2.0));  // nothing but the sink
  });
}

// exp(inf - inf) waits here. A sink that takes everything leaves no weight to any key that anyone could see.
TEST_CASE("field: a sink of plus and of minus infinity") {
  const octavo::problem p{.h_q = 3, .s_q = 20, .s_kv = 40, .d_qk = 32, .d_v = 32, .mask = {top_left}, .sink = true};
  test_case c = make_case(p, input_family::randn, 135);
  c.sink = {infinity, -infinity, 0.3f};
  test_case without = c;
  without.p.sink = false, without.sink.clear();
  const auto head = [&](const floats& x, std::int64_t h) {
    floats part;
    for_tokens(x, c.q_side(32), 0, p.s_q, [&](auto values, std::int64_t) {
      part.insert(part.end(), values.begin() + h * 32, values.begin() + (h + 1) * 32);
    });
    return part;
  };
  for_each_engine(p, {}, [&](const candidate& on) {
    const results r = finite_run(on, c), plain = on(without);
    CHECK(norm(head(r.o, 0)) <= 1e-20 * norm(plain.o));
    CHECK(norm(head(r.dq, 0)) <= 1e-20 * norm(plain.dq));
    CHECK(std::fabs(r.dsink[0]) <= 1e-20);
    CHECK(r.lse[0] == infinity);
    CHECK(identical(head(r.o, 1), head(plain.o, 1)));
    CHECK(relative_error(head(r.dq, 1), head(plain.dq, 1)) < 1e-5);
    CHECK(r.dsink[1] == 0);
    CHECK(std::isfinite(r.dsink[2]));
  });
}

// Context parallelism balances a causal mask by giving each rank an early and a late chunk of queries; keys travel
// round the ring. The delta must be that of the whole row, over all chunks, which the hard input does not forgive.
TEST_CASE("field: zigzag chunks of queries against a ring of keys") {
  const octavo::problem p{
      .b = 2, .h_q = 4, .h_kv = 2, .s_q = 256, .s_kv = 256, .d_qk = 32, .d_v = 32, .mask = {top_left}};
  const auto check = [&](input_family family, const char* delta) {
    test_case c = make_case(p, family, 136);
    c.delta_shift = inputs_detail::generator(input_family::randn, 137).normal(c.statistics());
    for_each_engine(p, {.recipes = {"token"}, .deltas = {delta}}, [&](const candidate& on) {
      const results whole = on(c, {.o_in_f32 = true});
      for (const std::int64_t ranks : {2, 4}) {
        CAPTURE(ranks);
        cuts chunks;  // two per rank: chunk i and the one as far from the end are one rank's
        for (std::int64_t i = 0; i <= 2 * ranks; ++i) chunks.push_back(i * p.s_q / (2 * ranks));
        const results parts = split_run(on, c, chunks, chunks).result;
        CHECK(largest_difference(parts.lse, whole.lse) < 1e-3);
        for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv})
          CHECK(relative_error(parts.*field, whole.*field) < 2e-3);
      }
    });
  };
  check(input_family::key_bias_value_mode, "matched");
  // P underflows relative to another maximum in the parts than in the backward, which sees that of the whole: a sum of
  // dS that is not zero, and that a key bias would multiply.
  check(input_family::randn, "consistent");
}
