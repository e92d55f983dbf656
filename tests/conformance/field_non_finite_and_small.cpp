// SPDX-License-Identifier: Apache-2.0
// A NaN or an infinity in one element of an input reaches what it reaches through allowed pairs, and nothing else; and
// a value that is zero, or far smaller than its neighbours, takes no digit from them.
#include <limits>

#include "support/judged.hpp"

using namespace octavo_tests;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Which elements are NaN.
std::vector<bool> nan_pattern(const floats& x) {
  std::vector<bool> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = std::isnan(x[i]);
  return out;
}
std::size_t count(const std::vector<bool>& pattern) {
  return static_cast<std::size_t>(std::count(pattern.begin(), pattern.end(), true));
}

struct planted {
  const char* name;
  floats test_case::* input;
  float value;
};
constexpr planted plants[] = {
    {"NaN in q", &test_case::q, not_a_number},  {"NaN in k", &test_case::k, not_a_number},
    {"NaN in v", &test_case::v, not_a_number},  {"NaN in dO", &test_case::dout, not_a_number},
    {"infinity in q", &test_case::q, infinity}, {"-infinity in k", &test_case::k, -infinity},
    {"infinity in v", &test_case::v, infinity}, {"infinity in dO", &test_case::dout, infinity},
};

}  // namespace

// Loops that have gone round their ring of stages several times: what they know of a tile is of that tile.
TEST_CASE("field: NaN in V of tiles far apart") {
  const std::int64_t s = 1100, d = 64;
  octavo::problem p{
      .s_q = s, .s_kv = s, .d_qk = d, .d_v = d, .element = octavo::dtype::f32, .mask = {octavo::causal_mask::top_left}};
  p.softmax_scale = 0.01f;  // every weight is far from being rounded to zero: that would take nothing from V
  test_case c = make_case(p, input_family::randn, 172);
  c.backward = false;
  const std::pair<std::int64_t, std::int64_t> places[] = {{3, 5}, {300, 7}, {301, 9}, {700, 11}, {1050, 13}};
  for (const auto& [key, channel] : places) c.v[static_cast<std::size_t>(key * d + channel)] = not_a_number;
  for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
    const results got = on(c);
    std::vector<bool> wanted(got.o.size());
    for (const auto& [key, channel] : places)
      for (std::int64_t row = key; row < s; ++row) wanted[static_cast<std::size_t>(row * d + channel)] = true;
    CHECK(nan_pattern(got.o) == wanted);
    CHECK(all_finite(got.lse));
  });
}

TEST_CASE("field: a non-finite element reaches allowed pairs and nothing else") {
  for (const auto [window, d] : {std::pair{-1, 32}, {20, 32}, {20, 64}}) {
    const octavo::problem p{.h_q = 2,
                            .h_kv = 2,
                            .s_q = 150,
                            .s_kv = 150,
                            .d_qk = d,
                            .d_v = d,
                            .element = octavo::dtype::f32,
                            .mask = {octavo::causal_mask::top_left, window}};
    for (const planted& plant : plants) {
      test_case c = make_case(p, input_family::randn, 171);
      (c.*plant.input)[static_cast<std::size_t>((70 * 2 + 1) * d + 5)] = plant.value;  // token 70, head 1
      for_each_engine(p, {.recipes = {"mx32", "token", "tile", "bf16"}}, [&](const candidate& on) {
        CAPTURE(std::string(plant.name));
        CAPTURE(window);
        CAPTURE(d);
        const results got = on(c), r8 = r8_of(on, c);
        std::size_t reached = 0;
        for (const auto field : {&results::o, &results::dq, &results::dk, &results::dv}) {
          CHECK(nan_pattern(got.*field) == nan_pattern(r8.*field));
          reached += count(nan_pattern(r8.*field));
          // Head 0 has nothing to do with it, nor have rows before token 70.
          for_tokens(got.o, c.q_side(d), 0, 70, [](auto values, std::int64_t) { REQUIRE(all_finite(values)); });
        }
        CHECK(reached > 0);
        for_tokens(got.dk, c.kv_side(d), 0, 150,
                   [](auto values, std::int64_t) { REQUIRE(all_finite(values.subspan(0, values.size() / 2))); });
      });
    }
  }
}

// Recipe token folds V's scales into P. The scale of a zero token, 1, must not stand for its size, and a token with a
// zero or small V (an attention sink is one) keeps its share of the softmax's sum.
TEST_CASE("field: tokens with a zero or a small V") {
  const octavo::problem p{.s_q = 96, .s_kv = 96, .d_qk = 32, .d_v = 32, .mask = {octavo::causal_mask::top_left}};
  for (const float others : {1e-3f, 5e-3f, 1.0f, 1e3f})
    for (const float first : {0.0f, 1e-3f}) {
      CAPTURE(others);
      CAPTURE(first);
      test_case c = make_case(p, input_family::randn, 172);
      multiply(c.v, others);
      for_tokens(c.v, c.kv_side(32), 0, 1, [=](auto values, std::int64_t) {
        for (float& x : values) x *= first;
      });
      // Key 0 holds a large part of every row, as a sink does.
      for_tokens(c.q, c.q_side(32), 0, 96, [&](auto row, std::int64_t) { row[0] = 2 / p.scale(); });
      for_tokens(c.k, c.kv_side(32), 0, 96, [&](auto key, std::int64_t j) { key[0] = j == 0 ? 2.0f : 0.0f; });
      const results truth = exact(c);
      for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
        const results got = finite_run(on, c, {.o_in_f32 = true});
        CHECK(relative_error(got.o, truth.o) < 0.08);
        CHECK(relative_error(got.dq, truth.dq) < 0.16);
        CHECK(relative_error(got.dv, truth.dv) < 0.08);
        CHECK(largest_difference(got.lse, truth.lse) < 0.4);
      });
    }
}

TEST_CASE("field: the tail of a packed tensor is empty, sink or not") {
  const octavo::problem p{.b = 2,
                          .h_q = 2,
                          .s_q = 30,
                          .s_kv = 30,
                          .d_qk = 32,
                          .d_v = 32,
                          .sink = true,
                          .packed = true,
                          .total_q = 50,
                          .total_kv = 47};
  test_case c = make_case(p, input_family::randn, 173, {0, 20, 45}, {0, 20, 20});
  for_each_engine(p, {}, [&](const candidate& on) {
    const results r = on(c);
    for (std::int64_t h = 0; h < 2; ++h) {
      for (std::int64_t i = 45; i < 50; ++i) CHECK(r.lse[static_cast<std::size_t>(h * 50 + i)] == -infinity);
      // Document 1 has rows, but no keys: all of its weight is the sink's.
      for (std::int64_t i = 20; i < 45; ++i)
        CHECK(r.lse[static_cast<std::size_t>(h * 50 + i)] == doctest::Approx(c.sink[static_cast<std::size_t>(h)]));
    }
    CHECK(all_zero(tokens(r.o, c.q_side(32), 20, 50)));
    CHECK(all_zero(tokens(r.dq, c.q_side(32), 20, 50)));
    CHECK(all_zero(tokens(r.dk, c.kv_side(32), 20, 47)));
  });
}
