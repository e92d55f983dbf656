// SPDX-License-Identifier: Apache-2.0
// Work that is split: payloads saved by one call and read by the next, keys and queries spread over calls.
#include <array>

#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;
namespace delta = octavo::delta;

namespace {

octavo::backends::reference::queue queue{2};

/// Memory for a quantized tensor of any recipe: scale arrays as large as the largest of them.
struct payload_memory {
  template <class Element>
  payload_memory(Element, std::int64_t rows, std::int64_t heads, std::int64_t d)
      : type(octavo::dtype_of<Element>::value),
        rowwise(type, static_cast<std::size_t>(rows * heads * d)),
        columnwise(rowwise),
        scales(static_cast<std::size_t>(rows * heads * d)),
        column_scales(scales),
        rows_(rows),
        heads_(heads),
        d_(d) {}
  octavo::quantized view(std::int64_t s) {
    octavo::quantized q;
    q.rowwise = rowwise.view(s, heads_, d_);
    q.columnwise = columnwise.view(s, heads_, d_);
    q.rowwise_scale = scales.data();
    q.columnwise_scale = column_scales.data();
    return q;
  }
  octavo::dtype type;
  buffer rowwise, columnwise;
  std::vector<float> scales, column_scales;  // floats for their alignment
  std::int64_t rows_, heads_, d_;
};

/// Forward and backward of one problem, with everything that can be passed on held in one place.
struct calls {
  explicit calls(const attention_case& c)
      : p(c.p),
        sq(c.q_stride_rows()),
        skv(c.kv_stride_rows()),
        q(p.element, c.q),
        k(p.element, c.k),
        v(p.element, c.v),
        dout(p.element, c.dout),
        o(p.element, c.dout.size()),
        dq(octavo::dtype::f32, c.q.size()),
        dk(octavo::dtype::f32, c.k.size()),
        dv(octavo::dtype::f32, c.v.size()) {
    for (numbers* x : {&lse, &m, &l, &n, &sum, &shift}) x->assign(static_cast<std::size_t>(p.stat_rows() * p.h_q), 0);
    in.q = q.view(sq, p.h_q, p.d_qk), in.k = k.view(skv, p.h_kv, p.d_qk), in.v = v.view(skv, p.h_kv, p.d_v);
    out.o = o.view(sq, p.h_q, p.d_v), out.lse = lse.data(), out.m = m.data(), out.l = l.data();
    if (p.packed)
      in.cu_seqlens_q = octavo::offsets_of(c.cu_q.data()), in.cu_seqlens_kv = octavo::offsets_of(c.cu_kv.data());
    back.q = in.q, back.k = in.k, back.v = in.v, back.dout = dout.view(sq, p.h_q, p.d_v), back.o = out.o;
    back.m = m.data(), back.l = l.data(), back.cu_seqlens_q = in.cu_seqlens_q, back.cu_seqlens_kv = in.cu_seqlens_kv;
    grad.dq = dq.view(sq, p.h_q, p.d_qk), grad.dk = dk.view(skv, p.h_kv, p.d_qk), grad.dv = dv.view(skv, p.h_kv, p.d_v);
    sums = {n.data(), sum.data()};
  }
  calls(const calls&) = delete;

  template <class Config>
  void forward() {
    const octavo::status s = octavo::attention_forward<Config>(queue, p, in, out, {});
    REQUIRE_MESSAGE(s.ok(), std::string(s.message.view()));
  }
  template <class Config>
  void backward() {
    const octavo::status s = octavo::attention_backward<Config>(queue, p, back, grad, {});
    REQUIRE_MESSAGE(s.ok(), std::string(s.message.view()));
  }

  octavo::problem p;
  std::int64_t sq, skv;
  buffer q, k, v, dout, o, dq, dk, dv;
  numbers lse, m, l, n, sum, shift;
  octavo::forward_inputs in;
  octavo::forward_outputs out;
  octavo::backward_inputs back;
  octavo::backward_outputs grad;
  octavo::delta_outputs sums;
};

template <class Recipe>
void check_payloads(const attention_case& c) {
  using config = reference_config<Recipe, delta::matched>;
  using element = typename Recipe::element;
  using gradient = typename Recipe::gradient_element;
  payload_memory q8(element{}, c.q_rows(), c.p.h_q, c.p.d_qk), k8(element{}, c.kv_rows(), c.p.h_kv, c.p.d_qk),
      v8(element{}, c.kv_rows(), c.p.h_kv, c.p.d_v), dout8(gradient{}, c.q_rows(), c.p.h_q, c.p.d_v);
  calls first(c);
  first.p.save_payloads = true;
  first.out.q_payload = q8.view(first.sq), first.out.k_payload = k8.view(first.skv),
  first.out.v_payload = v8.view(first.skv);
  first.grad.dout_payload = dout8.view(first.sq);
  first.template forward<config>();
  first.template backward<config>();

  calls second(c);
  second.p.payload_inputs = true;
  second.in.q = second.in.k = second.in.v = second.back.q = second.back.k = second.back.v = second.back.dout = {};
  second.in.q_payload = second.back.q_payload = q8.view(first.sq);
  second.in.k_payload = second.back.k_payload = k8.view(first.skv);
  second.in.v_payload = second.back.v_payload = v8.view(first.skv);
  second.back.dout_payload = dout8.view(first.sq);
  second.template forward<config>();
  second.template backward<config>();
  CHECK(first.o.values() == second.o.values());
  CHECK(first.lse == second.lse);
  CHECK(first.dq.values() == second.dq.values());
  CHECK(first.dk.values() == second.dk.values());
  CHECK(first.dv.values() == second.dv.values());
}

}  // namespace

TEST_CASE_TEMPLATE("payloads that one call saved serve the next", Recipe, recipe::mx32, recipe::token, recipe::tile,
                   recipe::tensor, recipe::e5m2_gradients<recipe::mx32>, recipe::e5m2_gradients<recipe::token>) {
  attention_case c;
  c.p.b = 2;
  c.p.h_q = 4;
  c.p.h_kv = 2;
  c.p.s_q = 150;
  c.p.s_kv = 170;
  c.p.mask.causal = octavo::causal_mask::bottom_right;
  SUBCASE("batch") {}
  SUBCASE("packed") {
    c.p.packed = true;
    c.p.b = 3;
    c.p.total_q = 185;
    c.p.total_kv = 215;
    c.cu_q = {0, 33, 33, 185};
    c.cu_kv = {0, 40, 45, 215};
  }
  fill_normal(c, 41);
  check_payloads<Recipe>(c);
}

TEST_CASE("payload bytes: one scale per 32 elements, rounded up") {
  attention_case c;
  c.p.s_q = c.p.s_kv = 33;
  fill_normal(c, 42);
  c.k[0] = 449;  // just above 448: the scale of the first 32 channels becomes 2
  payload_memory q8(octavo::e4m3{}, 33, 1, 64), k8(octavo::e4m3{}, 33, 1, 64), v8(octavo::e4m3{}, 33, 1, 64);
  calls first(c);
  first.p.save_payloads = true;
  first.p.element = octavo::dtype::f32;
  first.q = buffer(octavo::dtype::f32, c.q), first.k = buffer(octavo::dtype::f32, c.k),
  first.v = buffer(octavo::dtype::f32, c.v);
  first.o = buffer(octavo::dtype::f32, c.dout.size());
  first.in.q = first.q.view(33, 1, 64), first.in.k = first.k.view(33, 1, 64), first.in.v = first.v.view(33, 1, 64);
  first.out.o = first.o.view(33, 1, 64);
  first.out.q_payload = q8.view(33), first.out.k_payload = k8.view(33), first.out.v_payload = v8.view(33);
  first.forward<reference_config<recipe::mx32, delta::matched>>();
  const auto* rows = reinterpret_cast<const octavo::e8m0*>(k8.scales.data());
  const auto* columns = reinterpret_cast<const octavo::e8m0*>(k8.column_scales.data());
  CHECK(rows[0].exponent() == 1);
  CHECK(rows[1].exponent() < 0);
  CHECK(columns[0].exponent() == 1);     // channel 0, tokens 0 to 31
  CHECK(columns[64].exponent() < 0);     // channel 0, token 32
  CHECK(k8.rowwise.values()[0] == 224);  // 449 / 2 to nearest even
}

// Keys in two halves, as on two ranks: forwards that are merged, delta sums that are added, dQ that is added.
TEST_CASE_TEMPLATE("keys split over two calls", Recipe, recipe::mx32, recipe::token, recipe::exact) {
  using config = reference_config<Recipe, delta::matched>;
  constexpr std::int64_t s_q = 130, s_kv = 256, half = 128, d = 64;
  attention_case whole;
  whole.p.element = octavo::dtype::f32;
  whole.p.s_q = s_q;
  whole.p.s_kv = s_kv;
  whole.p.mask.causal = octavo::causal_mask::bottom_right;
  fill_normal(whole, 43);
  const attention_result truth = run<Recipe>(whole);

  const auto half_case = [&](std::int64_t first) {
    attention_case c = whole;
    c.p.s_kv = half;
    c.p.shard = {0, first, s_q, s_kv};
    c.k.assign(whole.k.begin() + first * d, whole.k.begin() + (first + half) * d);
    c.v.assign(whole.v.begin() + first * d, whole.v.begin() + (first + half) * d);
    return c;
  };
  calls left(half_case(0)), right(half_case(half)), both(whole);
  std::array<octavo::partial_forward, 2> parts;
  for (calls* part : {&left, &right}) {
    part->template forward<config>();
    parts[part == &right] = {part->out.o, part->m.data(), part->l.data(), part->lse.data()};
  }
  const octavo::status merged = octavo::attention_combine<config>(queue, whole.p, parts.data(), 2, both.out, {});
  REQUIRE_MESSAGE(merged.ok(), std::string(merged.message.view()));
  CHECK(relative_error(both.o.values(), truth.o) < 1e-5);
  CHECK(relative_error(both.lse, truth.lse) < 1e-6);
  CHECK(relative_error(both.l, truth.l) < 1e-6);
  CHECK(both.m == truth.m);

  for (calls* part : {&left, &right}) {
    part->back.m = both.m.data(), part->back.l = both.l.data(), part->back.delta_shift = both.shift.data();
    const octavo::status s = octavo::attention_delta<config>(queue, part->p, part->back, part->sums, {});
    REQUIRE_MESSAGE(s.ok(), std::string(s.message.view()));
  }
  for (std::size_t i = 0; i < both.n.size(); ++i)
    both.n[i] = left.n[i] + right.n[i], both.sum[i] = left.sum[i] + right.sum[i];
  numbers dq(truth.dq.size());
  for (calls* part : {&left, &right}) {
    part->p.delta_halves = true;
    part->back.delta_n = both.n.data(), part->back.delta_sum = both.sum.data();
    part->template backward<config>();
    const numbers x = part->dq.values();
    for (std::size_t i = 0; i < dq.size(); ++i) dq[i] += x[i];
  }
  CHECK(relative_error(dq, truth.dq) < 1e-5);
  CHECK(relative_error(left.dk.values(), part(truth.dk, 0, half * d)) < 1e-5);
  CHECK(relative_error(right.dk.values(), part(truth.dk, half * d, half * d)) < 1e-5);
  CHECK(relative_error(right.dv.values(), part(truth.dv, half * d, half * d)) < 1e-5);
}

TEST_CASE("what the reference refuses, it refuses in words") {
  octavo::problem p;
  p.s_q = p.s_kv = 8;
  p.payload_inputs = true;
  p.key_centring = octavo::key_centring::batch;
  CHECK(octavo::supports<reference_config<recipe::token, delta::matched>>(p).reason.view().find("key_shift") !=
        std::string_view::npos);
  p = {};
  p.delta_halves = true;
  CHECK(octavo::supports<reference_config<recipe::token, delta::matched>>(p).ok);
  CHECK_FALSE(octavo::supports<reference_config<recipe::token, delta::stale>>(p).ok);
}
