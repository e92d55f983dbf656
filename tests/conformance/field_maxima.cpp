// SPDX-License-Identifier: Apache-2.0
// M over several tiles of keys, of rows whose scores are all below zero, rise late, fall, or become large: a loop that
// looks twice only where a maximum rises must see every rise.
#include <cmath>

#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

/// Scores by tiles of 128 keys: along one direction of the channels, query i has a(i) and key j has b(j / 128).
test_case along_a_direction(const octavo::problem& p, const std::vector<float>& b_of_tile) {
  test_case c = make_case(p, input_family::randn, 191);
  const float a_of_query[4] = {1.0f, -1.0f, 0.25f, -0.25f};
  const auto shape = [&](floats& x, const tensor_shape& s, auto along) {
    for_tokens(x, s, 0, s.s, [&](auto values, std::int64_t token) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = octavo::bf16::round(0.2f * values[i] + along(token) * (i % 2 == 0 ? 1.0f : -1.0f));
    });
  };
  shape(c.q, c.q_side(p.d_qk), [&](std::int64_t i) { return a_of_query[i % 4]; });
  shape(c.k, c.kv_side(p.d_qk), [&](std::int64_t j) { return b_of_tile[static_cast<std::size_t>(j / 128)]; });
  return c;
}

octavo::problem over_tiles(std::size_t tiles) {
  return {
      .s_q = 70, .s_kv = static_cast<std::int64_t>(tiles) * 128, .d_qk = 64, .d_v = 64, .element = octavo::dtype::bf16};
}

}  // namespace

TEST_CASE("field: maxima that rise late, or never above zero") {
  for (const std::vector<float>& b :
       {std::vector<float>{-1, -0.5f, -2, 3, -1}, {1, -1, 0.5f, -3, 2}, {-3, -2, -1, -2}}) {
    const octavo::problem p = over_tiles(b.size());
    const test_case c = along_a_direction(p, b);
    // (consistent has the forward of matched.)
    for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched", "stale"}}, [&](const candidate& on) {
      const results got = judged(on, c), r8 = r8_of(on, c);
      // ceil(max): a sum that is cut may cross a whole number, in few rows. The policies without whole maxima give them as
      // they are.
      int others = 0;
      for (std::size_t i = 0; i < got.m.size(); ++i) {
        CHECK(std::fabs(got.m[i] - r8.m[i]) <= 1);
        if (std::fabs(got.m[i] - r8.m[i]) > 1e-2f * std::fabs(r8.m[i])) ++others;
      }
      CHECK(others <= 2);
    });
  }
}

// From 2^20 on products are rounded before M is taken off; here that begins in the fourth tile, in half of the rows.
TEST_CASE("field: maxima that become large late") {
  for (const float scale : {2e3f, 2e4f}) {
    octavo::problem p = over_tiles(5);
    test_case c = along_a_direction(p, {-1, 0.01f, 0.02f, 30, 1});
    p.softmax_scale = c.p.softmax_scale = scale;
    for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched", "stale"}}, [&](const candidate& on) {
      CAPTURE(scale);
      const results got = finite_run(on, c), r8 = r8_of(on, c);
      for (std::size_t i = 0; i < got.m.size(); ++i)
        CHECK(std::fabs(got.m[i] - r8.m[i]) <= 1e-3f * std::fabs(r8.m[i]) + 1);
      CHECK(relative_error(got.o, r8.o) < 0.2);
    });
  }
}
