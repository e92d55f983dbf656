// SPDX-License-Identifier: Apache-2.0
// Sizes. Offsets beyond 2^31 cannot be run in a test, but what is computed from extents alone can be asked for; what
// can be run at modest size is: many tiny problems, one long row, an expanded dO.
#include <limits>
#include <map>

#include "support/judged.hpp"

using namespace octavo_tests;

TEST_CASE("field: workspaces beyond 2^31 elements are sized, not wrapped") {
  const octavo::problem problems[] = {
      {.b = 400, .h_q = 4, .h_kv = 4, .s_q = 10496, .s_kv = 10496, .d_qk = 128, .d_v = 128},
      {.h_q = 56, .h_kv = 56, .s_q = 299521, .s_kv = 299521, .d_qk = 128, .d_v = 128},
      {.b = 1, .h_q = 16, .h_kv = 16, .s_q = 1, .s_kv = std::int64_t{1} << 33, .d_qk = 128, .d_v = 128},
  };
  for (const octavo::problem& p : problems) {
    REQUIRE(octavo::validate(p).ok());
    octavo::problem half = p;
    half.s_kv /= 2;
    for_each_engine(p, {.recipes = {"mx32", "token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
      const std::size_t size = on.engine.workspace_size(p, octavo::pass::backward);
      if (size == 0) return;  // a backend that keeps its matrices itself
      // Payloads of K and V at least, and of twice as many keys twice as large.
      CHECK(size >= static_cast<std::size_t>(p.b * p.h_kv * p.s_kv) * 256);
      CHECK(size - on.engine.workspace_size(half, octavo::pass::backward) >=
            static_cast<std::size_t>(p.b * p.h_kv * half.s_kv) * 256);
    });
  }
}

TEST_CASE("field: extents beyond 64-bit offsets are refused in words") {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  for (const octavo::problem& p : {octavo::problem{.b = huge, .s_q = huge, .s_kv = 1},
                                   octavo::problem{.h_q = huge, .h_kv = 1, .s_q = huge, .s_kv = 1},
                                   octavo::problem{.s_q = 1, .s_kv = std::numeric_limits<std::int64_t>::max() / 32}}) {
    const octavo::status s = octavo::validate(p);
    CHECK(s.code == octavo::status_code::invalid_argument);
    CHECK_FALSE(s.message.view().empty());
  }
}

// Thousands of batches of one token each: every batch is the row of one key, O its value.
TEST_CASE("field: a large batch of single tokens") {
  const octavo::problem p{.b = 2075, .h_q = 2, .h_kv = 2, .s_q = 1, .s_kv = 1, .d_qk = 32, .d_v = 32};
  const test_case c = make_case(p, input_family::randn, 141);
  for_each_engine(p, {.recipes = {"token", "tile"}, .deltas = {"matched"}}, [&](const candidate& on) {
    if (on.is_simulated() && on.is("token")) return;  // `tile` shows as much of 4,150 blocks
    const results r = finite_run(on, c);
    CHECK(relative_error(r.o, c.v) < 0.05);
    CHECK(largest_difference(std::span(r.o).last(64), std::span(c.v).last(64)) < 0.3);
    CHECK(relative_error(r.dv, c.dout) < 0.1);
  });
}

// Uniform attention over ever more keys: accumulators that lose bits make the error grow with the length.
TEST_CASE("field: the error of a long row does not grow with it") {
  std::map<std::string, double> short_row;
  for (const std::int64_t s : {512, 4096, 16384}) {
    CAPTURE(s);
    const octavo::problem p{.s_q = 1, .s_kv = s, .d_qk = 32, .d_v = 32};
    test_case c = make_case(p, input_family::randn, 142);
    multiply(c.q, 0.01f);
    for (float& x : c.v) x += 1;  // a common mode, or O would vanish with the length
    for_tokens(c.v, c.kv_side(32), s / 3, s / 3 + 1, [](auto values, std::int64_t) { values[5] = 200; });  // the needle
    const results truth = exact(c);
    for_each_engine(p, {.recipes = {"token", "tile", "mx32"}, .deltas = {"matched", "consistent"}},
                    [&](const candidate& on) {
                      const results r = finite_run(on, c);
                      const double error = relative_error(r.o, truth.o);
                      if (s == 512) short_row[on.name()] = error;
                      CHECK(error < std::max(1.5 * short_row[on.name()], 2e-3));
                      CHECK(error < 0.01);
                      CHECK(relative_error(r.dv, truth.dv) < 0.1);  // P of 1/16384 has not vanished
                    });
  }
}

// sum().backward() hands over one element with strides of 0 where a kernel expects [b, s, h, d].
TEST_CASE("field: one query over many keys with an expanded dO") {
  const octavo::problem p{.h_q = 2, .s_q = 1, .s_kv = 4096, .deterministic = true};
  test_case c = make_case(p, input_family::randn, 143);
  std::fill(c.dout.begin(), c.dout.end(), 1.0f);
  for_each_engine(p, {.recipes = {"token"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    const results copied = judged(on, c);
    const session queue(on.backend);
    arena memory(queue);
    floats dq, dk, dv;
    octavo::backward_inputs in;
    in.q = memory.put(c.q, p.element, c.q_side(64)), in.k = memory.put(c.k, p.element, c.kv_side(64));
    in.v = memory.put(c.v, p.element, c.kv_side(64)), in.o = memory.put(copied.o, p.element, c.q_side(64));
    in.m = memory.put(copied.m), in.l = memory.put(copied.l);
    in.dout = memory.put(floats(64, 1.0f), p.element, {1, 1, 1, 64});
    in.dout.stride_b = in.dout.stride_s = in.dout.stride_h = 0;
    octavo::backward_outputs out;
    out.dq = memory.take(dq, "dQ", octavo::dtype::f32, c.q_side(64));
    out.dk = memory.take(dk, "dK", octavo::dtype::f32, c.kv_side(64));
    out.dv = memory.take(dv, "dV", octavo::dtype::f32, c.kv_side(64));
    const std::size_t size = on.engine.workspace_size(p, octavo::pass::backward);
    const device_memory scratch(queue, size);
    session::require(on.engine.backward(queue.queue(), p, in, out, {scratch.data(), size}));
    queue.synchronise();
    CHECK(memory.collect().empty());
    CHECK(identical(dq, copied.dq));
    CHECK(identical(dk, copied.dk));
    CHECK(identical(dv, copied.dv));
  });
}
