// SPDX-License-Identifier: Apache-2.0
// A sequence cut into chunks of keys, and of queries, is the sequence: the forwards merge to its O and LSE, and with
// the sums of delta added over all chunks the gradients are those of the whole. A delta of one chunk's own would not
// be.
#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/split_run.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left, bottom_right = octavo::causal_mask::bottom_right;

/// The caller's c of the matched delta, the same for all parts.
test_case with_shift(const octavo::problem& p, input_family family, unsigned seed) {
  test_case c = make_case(p, family, seed);
  c.delta_shift = inputs_detail::generator(family, seed + 1).normal(c.statistics());
  return c;
}

/// Parts differ from the whole in what underflows: P relative to the maximum so far, dS by which keys share a scale.
constexpr double underflow = 2e-4;

void check_split(const candidate& on, const test_case& c, const cuts& q, const cuts& kv) {
  CAPTURE(q.size());
  CAPTURE(kv.size());
  const results whole = on(c, {.o_in_f32 = true}), parts = split_run(on, c, q, kv).result;
  const double allowed = std::max(underflow, order_of_sums(on, c.p));
  CHECK(relative_error(parts.o, whole.o) < allowed);
  CHECK(largest_difference(parts.lse, whole.lse) < allowed);
  CHECK(relative_error(parts.dq, whole.dq) < allowed);
  CHECK(relative_error(parts.dk, whole.dk) < allowed);
  CHECK(relative_error(parts.dv, whole.dv) < allowed);
}

}  // namespace

TEST_CASE("keys in parts: any cut, empty parts too, with scales of tokens") {
  octavo::problem p{.b = 2, .h_q = 2, .s_q = 70, .s_kv = 210, .d_qk = 64, .d_v = 64};
  for (const auto causal : {octavo::causal_mask::none, top_left, bottom_right}) {
    p.mask.causal = causal;
    const test_case c = with_shift(p, input_family::randn, 61);
    for_each_engine(p, {.recipes = {"token"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
      for (const cuts& kv :
           {cuts{0, 210}, cuts{0, 128, 210}, cuts{0, 1, 210}, cuts{0, 77, 209, 210}, cuts{0, 0, 100, 100, 210, 210}})
        check_split(on, c, {0, 70}, kv);
    });
  }
}

TEST_CASE("keys in parts: whole blocks, with scales of blocks") {
  const octavo::problem p{
      .b = 2, .h_q = 4, .h_kv = 2, .s_q = 200, .s_kv = 330, .d_qk = 64, .d_v = 64, .mask = {bottom_right, 150}};
  const test_case c = with_shift(p, input_family::randn, 62);
  for_each_engine(p, {.recipes = {"mx32", "tile"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    for (const cuts& kv : {cuts{0, 128, 330}, cuts{0, 128, 128, 256, 330}}) check_split(on, c, {0, 200}, kv);
  });
}

// Without the sums of the other parts each part would subtract a delta of its own: on the hard input that shows.
TEST_CASE("keys in parts: delta belongs to the whole row") {
  const octavo::problem p{.h_q = 2, .s_q = 60, .s_kv = 256};
  const test_case c = with_shift(p, input_family::key_bias_value_mode, 63);
  for_each_engine(p, {.deltas = {"matched"}}, [&](const candidate& on) { check_split(on, c, {0, 60}, {0, 128, 256}); });
}

TEST_CASE("keys in parts: the same key shift for all") {
  octavo::problem p{
      .b = 2, .h_q = 2, .s_q = 60, .s_kv = 200, .mask = {top_left}, .key_centring = octavo::key_centring::given};
  const test_case c = with_shift(p, input_family::key_bias_value_mode, 64);
  for_each_engine(p, {.recipes = {"token"}, .deltas = {"matched"}},
                  [&](const candidate& on) { check_split(on, c, {0, 60}, {0, 128, 200}); });
}
