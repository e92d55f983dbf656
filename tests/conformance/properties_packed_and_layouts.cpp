// SPDX-License-Identifier: Apache-2.0
// How tokens are handed over must not matter: packed or one document at a time, in a batch or alone, token-major,
// head-major, with gaps, broadcast, or already quantised. Masks that say the same thing in other words are here, too.
#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;

namespace {

constexpr auto top_left = octavo::causal_mask::top_left, bottom_right = octavo::causal_mask::bottom_right;
const std::vector<std::string_view> all_recipes{"mx32", "token", "tile", "tensor", "bf16"};

void check_same(const results& x, const results& y) {
  CHECK(identical(x.o, y.o));
  CHECK(identical(x.lse, y.lse));
  CHECK(identical(x.dq, y.dq));
  CHECK(identical(x.dk, y.dk));
  CHECK(identical(x.dv, y.dv));
}

/// Tokens [q0, q1) and [k0, k1) of a case whose tensors are one long run of tokens, as a case of their own.
test_case document(const test_case& c, std::int64_t q0, std::int64_t q1, std::int64_t k0, std::int64_t k1) {
  test_case x = c;
  x.p.b = 1, x.p.s_q = q1 - q0, x.p.s_kv = k1 - k0;
  x.p.packed = false, x.p.total_q = x.p.total_kv = 0, x.cu_q.clear(), x.cu_kv.clear();
  const tensor_shape q{1, 0, c.p.h_q, c.p.d_qk}, o{1, 0, c.p.h_q, c.p.d_v}, k{1, 0, c.p.h_kv, c.p.d_qk},
      v{1, 0, c.p.h_kv, c.p.d_v};
  x.q = tokens(c.q, q, q0, q1), x.dout = tokens(c.dout, o, q0, q1);
  x.k = tokens(c.k, k, k0, k1), x.v = tokens(c.v, v, k0, k1);
  return x;
}

}  // namespace

TEST_CASE("packed documents are documents one at a time") {
  const offsets cu_q{0, 33, 33, 40, 173, 180}, cu_kv{0, 41, 50, 50, 190, 197};  // no queries, no keys; then a tail
  octavo::problem p{.b = 5,
                    .h_q = 4,
                    .h_kv = 2,
                    .s_q = 140,
                    .s_kv = 140,
                    .d_qk = 64,
                    .d_v = 64,
                    .packed = true,
                    .total_q = 186,
                    .total_kv = 200,
                    .deterministic = true};
  for (const auto causal : {octavo::causal_mask::none, top_left, bottom_right}) {
    p.mask.causal = causal;
    const test_case c = make_case(p, input_family::key_bias_value_mode, 51, cu_q, cu_kv);
    for_each_engine(p, {.recipes = all_recipes}, [&](const candidate& on) {
      const results packed = on(c);
      const tensor_shape q = c.q_side(p.d_qk), o = c.q_side(p.d_v), k = c.kv_side(p.d_qk), v = c.kv_side(p.d_v);
      for (std::size_t i = 0; i + 1 < cu_q.size(); ++i) {
        CAPTURE(i);
        const std::int64_t q0 = cu_q[i], q1 = cu_q[i + 1], k0 = cu_kv[i], k1 = cu_kv[i + 1];
        const results alone = on(document(c, q0, q1, k0, k1));
        CHECK(identical(tokens(packed.o, o, q0, q1), alone.o));
        CHECK(identical(tokens(packed.lse, statistics_shape(c), q0, q1), alone.lse));
        CHECK(identical(tokens(packed.dq, q, q0, q1), alone.dq));
        CHECK(identical(tokens(packed.dk, k, k0, k1), alone.dk));
        CHECK(identical(tokens(packed.dv, v, k0, k1), alone.dv));
      }
      CHECK(all_zero(tokens(packed.o, o, cu_q.back(), p.total_q)));
      CHECK(all_zero(tokens(packed.dq, q, cu_q.back(), p.total_q)));
      CHECK(all_zero(tokens(packed.dk, k, cu_kv.back(), p.total_kv)));
      CHECK(all_zero(tokens(packed.dv, v, cu_kv.back(), p.total_kv)));
    });
  }
}

TEST_CASE("a batch entry is the same as alone") {
  const octavo::problem p{
      .b = 3, .h_q = 2, .s_q = 45, .s_kv = 140, .d_qk = 32, .d_v = 64, .mask = {bottom_right}, .deterministic = true};
  const test_case c = make_case(p, input_family::outliers, 52);
  for_each_engine(p, {.recipes = all_recipes}, [&](const candidate& on) {
    const results all = on(c);
    for (std::int64_t b = 0; b < p.b; ++b) {
      const results alone = on(document(c, b * p.s_q, (b + 1) * p.s_q, b * p.s_kv, (b + 1) * p.s_kv));
      const auto part = [&](const floats& x, const floats& like) {
        return std::span(x).subspan(static_cast<std::size_t>(b) * like.size(), like.size());
      };
      CHECK(identical(part(all.o, alone.o), alone.o));
      CHECK(identical(part(all.lse, alone.lse), alone.lse));
      CHECK(identical(part(all.dq, alone.dq), alone.dq));
      CHECK(identical(part(all.dk, alone.dk), alone.dk));
      CHECK(identical(part(all.dv, alone.dv), alone.dv));
    }
  });
}

TEST_CASE("a window of everything before is a causal mask") {
  octavo::problem p{
      .h_q = 2, .s_q = 160, .s_kv = 160, .d_qk = 64, .d_v = 64, .mask = {top_left}, .deterministic = true};
  const test_case causal = make_case(p, input_family::randn, 53);
  test_case window = causal;
  window.p.mask = {.window_left = p.s_kv - 1, .window_right = 0};
  for_each_engine(p, {}, [&](const candidate& on) { check_same(on(causal), on(window)); });
}

TEST_CASE("strides do not matter") {
  const octavo::problem p{.b = 2,
                          .h_q = 4,
                          .h_kv = 2,
                          .s_q = 40,
                          .s_kv = 140,
                          .d_qk = 64,
                          .d_v = 64,
                          .mask = {bottom_right},
                          .deterministic = true};
  const test_case c = make_case(p, input_family::randn, 54);
  for_each_engine(p, {.recipes = all_recipes}, [&](const candidate& on) {
    const results plain = on(c);
    check_same(plain, on(c, {.order = layout::heads_first}));
    check_same(plain, on(c, {.order = layout::padded}));
  });
}

// The gradient of sum() arrives as one element with strides of 0; the library asks for stride 1 along d and takes 0 for
// the rest.
TEST_CASE("a broadcast dO is its copies") {
  octavo::problem p{.b = 2, .h_q = 2, .s_q = 40, .s_kv = 70, .d_qk = 64, .d_v = 64, .deterministic = true};
  test_case c = make_case(p, input_family::randn, 55);
  const floats row(c.dout.begin(), c.dout.begin() + p.d_v);
  for (std::size_t i = 0; i < c.dout.size(); ++i) c.dout[i] = row[i % row.size()];
  for_each_engine(p, {.deltas = {"matched"}}, [&](const candidate& on) {
    const results copied = on(c);
    const session queue(on.backend);
    arena memory(queue);
    floats dq, dk, dv;
    octavo::backward_inputs in;
    in.q = memory.put(c.q, p.element, c.q_side(p.d_qk)), in.k = memory.put(c.k, p.element, c.kv_side(p.d_qk));
    in.v = memory.put(c.v, p.element, c.kv_side(p.d_v)), in.m = memory.put(copied.m), in.l = memory.put(copied.l);
    in.dout = memory.put(row, p.element, {1, 1, 1, p.d_v});
    in.dout.stride_b = in.dout.stride_s = in.dout.stride_h = 0;
    octavo::backward_outputs out;
    out.dq = memory.take(dq, "dQ", octavo::dtype::f32, c.q_side(p.d_qk));
    out.dk = memory.take(dk, "dK", octavo::dtype::f32, c.kv_side(p.d_qk));
    out.dv = memory.take(dv, "dV", octavo::dtype::f32, c.kv_side(p.d_v));
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

TEST_CASE("payloads that were handed out serve as inputs") {
  octavo::problem p{.b = 2,
                    .h_q = 4,
                    .h_kv = 2,
                    .s_q = 70,
                    .s_kv = 150,
                    .mask = {bottom_right},
                    .save_payloads = true,
                    .deterministic = true};
  const test_case saving = make_case(p, input_family::key_bias_value_mode, 56);
  for (const bool e5m2 : {false, true})
    for_each_engine(p, {.recipes = {"mx32", "token", "tile", "tensor"}, .e5m2_gradients = e5m2},
                    [&](const candidate& on) {
                      const results made = on(saving);
                      test_case given = saving;
                      given.p.save_payloads = false, given.p.payload_inputs = true;
                      given.payloads = made.payloads;
                      check_same(on(given), made);
                    });
}
