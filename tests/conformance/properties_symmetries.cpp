// SPDX-License-Identifier: Apache-2.0
// Symmetries of attention that quantisation keeps: grouped heads are repeated heads, keys have no order, powers of two
// pass through, and a row of one key has no gradient.
#include <numeric>

#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;

namespace {

/// x with the rows of head h / group in place of head h.
floats repeat_heads(const floats& x, const tensor_shape& shape, std::int64_t group) {
  floats out;
  for (std::int64_t row = 0; row < shape.rows(); ++row)
    for (std::int64_t copy = 0; copy < group; ++copy)
      out.insert(out.end(), x.begin() + row * shape.d, x.begin() + (row + 1) * shape.d);
  return out;
}
/// The sums over each group of heads.
floats sum_heads(const floats& x, std::int64_t d, std::int64_t group) {
  floats out(x.size() / static_cast<std::size_t>(group));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / d, c = static_cast<std::int64_t>(i) % d;
    out[static_cast<std::size_t>(row / group * d + c)] += x[i];
  }
  return out;
}

/// Tokens in the order that `order` gives.
floats permuted(const floats& x, const tensor_shape& shape, const std::vector<std::int64_t>& order) {
  floats out;
  for (const std::int64_t j : order) {
    const floats token = tokens(x, shape, j, j + 1);
    out.insert(out.end(), token.begin(), token.end());
  }
  return out;
}

}  // namespace

TEST_CASE("grouped queries are repeated keys and values") {
  const octavo::problem p{.b = 2,
                          .h_q = 6,
                          .h_kv = 2,
                          .s_q = 70,
                          .s_kv = 150,
                          .d_qk = 64,
                          .d_v = 64,
                          .mask = {octavo::causal_mask::bottom_right},
                          .deterministic = true};
  const test_case grouped = make_case(p, input_family::key_bias_value_mode, 31);
  test_case repeated = grouped;
  repeated.p.h_kv = p.h_q;
  repeated.k = repeat_heads(grouped.k, grouped.kv_side(p.d_qk), p.group());
  repeated.v = repeat_heads(grouped.v, grouped.kv_side(p.d_v), p.group());
  for_each_engine(p, {}, [&](const candidate& on) {
    const results x = on(grouped), y = on(repeated);
    CHECK(identical(x.o, y.o));
    CHECK(identical(x.lse, y.lse));
    CHECK(identical(x.dq, y.dq));
    CHECK(relative_error(x.dk, sum_heads(y.dk, p.d_qk, p.group())) < order_of_sums(on, p));
    CHECK(relative_error(x.dv, sum_heads(y.dv, p.d_v, p.group())) < order_of_sums(on, p));
  });
}

// Without a mask keys are a set. Only recipes whose scales belong to one token keep every payload; gradients differ by
// which keys share the scale of a row of dS, that is by underflow.
TEST_CASE("keys have no order") {
  const octavo::problem p{.s_q = 60, .s_kv = 200, .d_qk = 64, .d_v = 64};
  const test_case c = make_case(p, input_family::randn, 32);
  std::vector<std::int64_t> order(static_cast<std::size_t>(p.s_kv));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(33));
  test_case shuffled = c;
  shuffled.k = permuted(c.k, c.kv_side(p.d_qk), order), shuffled.v = permuted(c.v, c.kv_side(p.d_v), order);
  const storage exact_o{.o_in_f32 = true};
  for_each_engine(p, {.recipes = {"token", "bf16"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    const results x = on(c, exact_o), y = on(shuffled, exact_o);
    CHECK(relative_error(y.o, x.o) < order_of_sums(on, p));
    CHECK(largest_difference(y.lse, x.lse) < 1e-5);
    CHECK(relative_error(y.dq, x.dq) < 2e-3);
    CHECK(relative_error(y.dk, permuted(x.dk, c.kv_side(p.d_qk), order)) < 2e-3);
    CHECK(relative_error(y.dv, permuted(x.dv, c.kv_side(p.d_v), order)) < 2e-3);
  });
}

// Every scale is a power of two (or, for `tensor`, proportional to its input), so powers of two change no mantissa.
TEST_CASE("powers of two pass through to the last bit") {
  const octavo::problem p{.h_q = 2,
                          .s_q = 70,
                          .s_kv = 140,
                          .d_qk = 64,
                          .d_v = 64,
                          .mask = {octavo::causal_mask::bottom_right},
                          .softmax_scale = 0.3f,
                          .deterministic = true};
  const test_case c = make_case(p, input_family::key_bias_value_mode, 34);
  for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor", "bf16"}}, [&](const candidate& on) {
    const results x = on(c);
    // `token` folds V's scale into M. Where M is no whole number (stale), or P comes by M + log2 n, as in the lane-level
    // schedules, another M rounds a weight's exponent elsewhere in its last bit, and now and then a quantised P or dS with it.
    const bool to_the_bit = !on.is("token") || (on.engine.delta != "stale" && !on.backend.name.ends_with("-simt") &&
                                                on.backend.name.find("hip") == std::string_view::npos);
    const auto near = [](floats expected, float factor, const floats& got) {
      multiply(expected, factor);
      return relative_error(got, expected) < 2e-2;
    };
    const auto check = [&](const test_case& scaled, float o, float dq, float dk, float dv) {
      const results y = on(scaled);
      if (!to_the_bit) {
        CHECK(largest_difference(y.lse, x.lse) < 1e-5);
        CHECK(near(x.o, o, y.o));
        CHECK(near(x.dq, dq, y.dq));
        CHECK(near(x.dk, dk, y.dk));
        CHECK(near(x.dv, dv, y.dv));
        return;
      }
      CHECK(is_multiple(x.o, o, y.o));
      CHECK(largest_difference(y.lse, x.lse) < 1e-5);
      CHECK(is_multiple(x.dq, dq, y.dq));
      CHECK(is_multiple(x.dk, dk, y.dk));
      CHECK(is_multiple(x.dv, dv, y.dv));
    };
    for (const float factor : {0x1p-3f, 0x1p5f}) {
      CAPTURE(factor);
      test_case q = c, k = c, v = c, dout = c;
      multiply(q.q, factor), *q.p.softmax_scale /= factor;
      check(q, 1, 1 / factor, 1, 1);
      multiply(k.k, factor), *k.p.softmax_scale /= factor;
      check(k, 1, 1, 1 / factor, 1);
      multiply(v.v, factor);
      check(v, factor, factor, factor, 1);
      multiply(dout.dout, factor);
      check(dout, 1, factor, factor, factor);
    }
  });
}

// O of one key is its value whatever its score, so that P = 1, dS = 0. The stale delta is dO . O with another dO than
// dP's.
TEST_CASE("a row of one key has no gradient") {
  for (const std::int64_t d : {32, 64}) {
    const octavo::problem p{.b = 2, .h_q = 2, .s_q = 5, .s_kv = 1, .d_qk = d, .d_v = d};
    const test_case c = make_case(p, input_family::key_bias_value_mode, 35);
    for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor", "bf16"}, .deltas = {"matched", "consistent"}},
                    [&](const candidate& on) {
                      const results r = on(c);
                      const double size = norm(c.dout) * norm(c.v) / std::sqrt(static_cast<double>(p.b * p.h_q));
                      // consistent: delta, from O, and dP are cut at different places where sums are cut.
                      const double zero = truncates(on, p) && on.engine.delta == "consistent" ? 1e-5 : 1e-6;
                      CHECK(norm(r.dq) <= zero * size * norm(c.k));
                      CHECK(norm(r.dk) <= zero * size * norm(c.q));
                      CHECK(norm(r.dv) > 0);
                    });
  }
}
