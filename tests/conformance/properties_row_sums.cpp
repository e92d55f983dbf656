// SPDX-License-Identifier: Apache-2.0
// The invariant that the library is about: shifting a row of S changes nothing, so every row of dS sums to zero (with a
// sink: together with the sink's own gradient, which the row_sum output includes). Matched: in any recipe, whatever the
// error of the forward. Consistent: up to the rounding of O, which its residual takes away. Stale: not, or these tests
// could not fail.
#include <cmath>

#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;

namespace {

constexpr auto bottom_right = octavo::causal_mask::bottom_right;
const std::vector<std::string_view> fp8_recipes{"mx32", "token", "tile", "tensor"},
    all_recipes{"mx32", "token", "tile", "tensor", "bf16"};

double ratio(const results& r) { return row_sum_ratio(r.row_sum, r.l1); }

/// The largest sum of a single row relative to the mean L1 norm of the rows: one bad row must not hide among many.
double worst_row(const results& r) {
  double worst = 0, l1 = 0;
  for (const float x : r.row_sum) worst = std::isnan(x) ? infinite : std::max(worst, std::fabs(double{x}));
  for (const float x : r.l1) l1 += x;
  return worst * static_cast<double>(r.l1.size()) / l1;
}

const octavo::problem problems[] = {
    {.h_q = 2, .s_q = 130, .s_kv = 200, .mask = {bottom_right}},
    {.b = 2, .h_q = 2, .s_q = 33, .s_kv = 70, .d_qk = 32, .d_v = 96, .mask = {.window_left = 20, .window_right = 9}},
    {.h_q = 4, .h_kv = 2, .s_q = 60, .s_kv = 90, .sink = true},
    {.s_q = 60, .s_kv = 90, .softcap = 5},
};

}  // namespace

TEST_CASE("row sums of dS: zero under a matched delta") {
  for (const bool e5m2 : {false, true})
    for (const octavo::problem& p : problems)
      for (const input_family family : every_family) {
        const test_case c = make_case(p, family, 11);
        const selection which{
            .recipes = e5m2 ? fp8_recipes : all_recipes, .deltas = {"matched"}, .e5m2_gradients = e5m2};
        for_each_engine(p, which, [&](const candidate& on) {
          const results r = on(c);
          CHECK(ratio(r) <= 1e-5);
          CHECK(worst_row(r) <= 1e-4);
        });
      }
}

TEST_CASE("row sums of dS: small under a consistent delta, gone with the residual of O") {
  for (const octavo::problem& p : problems) {
    test_case c = make_case(p, input_family::key_bias_value_mode, 12);
    for_each_engine(p, {.deltas = {"consistent"}}, [&](const candidate& on) { CHECK(ratio(on(c)) <= 2e-2); });
    c.p.o_residual = true;
    for_each_engine(c.p, {.recipes = {"token", "tile"}, .deltas = {"consistent"}},
                    [&](const candidate& on) { CHECK(ratio(on(c)) <= (truncates(on, c.p) ? 5e-3 : 1e-4)); });
    // (Where sums are cut, O and dP are, each at its own place.) The two images of V differ where one of them underflows.
    for_each_engine(c.p, {.recipes = {"mx32"}, .deltas = {"consistent"}},
                    [&](const candidate& on) { CHECK(ratio(on(c)) <= 1e-3); });
  }
}

TEST_CASE("row sums of dS: a stale delta does not have the invariant") {
  const test_case c = make_case(problems[0], input_family::key_bias_value_mode, 13);
  for_each_engine(c.p, {.deltas = {"stale"}},
                  [&](const candidate& on) { CHECK(ratio(on(c)) >= (on.is("bf16") ? 1e-3 : 1e-2)); });
}

// With a sink the keys alone sum to -dS_sink: dsink, summed over the rows, is what the row sums would lack.
TEST_CASE("row sums of dS: dsink is the sink's share") {
  const octavo::problem p{.h_q = 2, .s_q = 40, .s_kv = 66, .mask = {bottom_right}, .sink = true};
  const test_case c = make_case(p, input_family::randn, 14);
  const results truth = exact(c);
  for_each_engine(p, {.recipes = all_recipes, .deltas = {"matched"}}, [&](const candidate& on) {
    const results r = on(c);
    CHECK(ratio(r) <= 1e-5);
    CHECK(norm(r.dsink) > 0);
    CHECK(relative_error(r.dsink, truth.dsink) < 0.1);
  });
}
