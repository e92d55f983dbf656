// SPDX-License-Identifier: Apache-2.0
// Masks, extents and packing: problems that must agree with one another, and rows that see nothing.
#include "attention_case.hpp"

using namespace reference_tests;
namespace recipe = octavo::recipe;
namespace delta = octavo::delta;

namespace {

attention_case make(std::int64_t s_q, std::int64_t s_kv, octavo::mask mask = {}) {
  attention_case c;
  c.p.s_q = s_q;
  c.p.s_kv = s_kv;
  c.p.mask = mask;
  fill_normal(c, 3);
  return c;
}

void check_equal(const attention_result& a, const attention_result& b) {
  CHECK(a.o == b.o);
  CHECK(a.lse == b.lse);
  CHECK(a.dq == b.dq);
  CHECK(a.dk == b.dk);
  CHECK(a.dv == b.dv);
  CHECK(a.delta == b.delta);
}

}  // namespace

TEST_CASE_TEMPLATE("one mask, written in two ways", Recipe, recipe::mx32, recipe::token, recipe::exact) {
  const auto none = octavo::causal_mask::none, top_left = octavo::causal_mask::top_left,
             bottom_right = octavo::causal_mask::bottom_right;
  const auto same = [](const attention_case& a, const attention_case& b) {
    check_equal(run<Recipe>(a), run<Recipe>(b));
  };
  same(make(129, 129, {top_left}), make(129, 129, {none, -1, 0}));
  same(make(129, 129, {top_left}), make(129, 129, {none, 128, 0}));
  same(make(129, 129, {top_left}), make(129, 129, {top_left, -1, 5}));  // causal clips the window's right side
  same(make(65, 65, {top_left, 10, -1}), make(65, 65, {bottom_right, 10, -1}));
  same(make(40, 70, {}), make(40, 70, {none, 69, 69}));
}

TEST_CASE("a shard sees what its rows see in the whole sequence") {
  const attention_case whole = make(160, 192, {octavo::causal_mask::bottom_right, 50, -1});
  attention_case half = whole;
  half.p.s_q = 32;
  half.p.shard = {128, 0, 160, 192};
  const std::int64_t row = 64;
  half.q.assign(whole.q.begin() + 128 * row, whole.q.end());
  half.dout.assign(whole.dout.begin() + 128 * row, whole.dout.end());
  const attention_result a = run<recipe::token>(whole), b = run<recipe::token>(half);
  CHECK(std::equal(b.o.begin(), b.o.end(), a.o.begin() + 128 * row));
  CHECK(std::equal(b.dq.begin(), b.dq.end(), a.dq.begin() + 128 * row));
}

TEST_CASE_TEMPLATE("rows that see no key are zero and touch nothing", Delta, delta::stale, delta::matched,
                   delta::consistent) {
  attention_case c = make(48, 16, {octavo::causal_mask::bottom_right});  // rows 0 to 31 see nothing
  std::fill_n(c.dout.begin(), 32 * 64, NAN);
  std::fill_n(c.q.begin(), 32 * 64, NAN);
  const attention_result r = run<recipe::token, Delta>(c);
  CHECK(all_zero(part(r.o, 0, 32 * 64)));
  CHECK(all_zero(part(r.dq, 0, 32 * 64)));
  for (const numbers* x : {&r.m, &r.l, &r.delta, &r.row_sum, &r.l1}) CHECK(all_zero(part(*x, 0, 32)));
  for (const float lse : part(r.lse, 0, 32)) CHECK(lse == -INFINITY);
  CHECK(all_finite(part(r.o, 32 * 64, 16 * 64)));
  for (const numbers* x : {&r.dk, &r.dv}) CHECK(all_finite(*x));
}

TEST_CASE("sequences of length 0 and 1") {
  const attention_result no_keys = run<recipe::mx32>(make(5, 0));
  CHECK(all_zero(no_keys.o));
  CHECK(all_zero(no_keys.dq));
  const attention_result no_queries = run<recipe::mx32>(make(0, 5));
  CHECK(no_queries.dk.size() == 5 * 64);
  CHECK(all_zero(no_queries.dk));
  CHECK(all_zero(no_queries.dv));
  // One key: P = 1 whatever the scores, so nothing reaches Q and K.
  const attention_result one = run<recipe::exact>(make(3, 1));
  CHECK(all_zero(one.dq));
  CHECK(all_zero(one.dk));
}

TEST_CASE_TEMPLATE("zero tensors have zero gradients, not NaN", Recipe, recipe::mx32, recipe::token, recipe::tile,
                   recipe::tensor, recipe::bf16) {
  attention_case c = make(40, 40);
  for (numbers* x : {&c.q, &c.k, &c.v, &c.dout}) std::fill(x->begin(), x->end(), 0.0f);
  const attention_result r = run<Recipe>(c);
  for (const numbers* x : {&r.o, &r.dq, &r.dk, &r.dv}) CHECK(all_zero(*x));
}

TEST_CASE("query heads read the kv head of their group") {
  attention_case grouped;
  grouped.p.b = 2;
  grouped.p.h_q = 4;
  grouped.p.h_kv = 2;
  grouped.p.s_q = grouped.p.s_kv = 33;
  fill_normal(grouped, 4);
  attention_case repeated = grouped;
  repeated.p.h_kv = 4;
  for (numbers attention_case::* x : {&attention_case::k, &attention_case::v}) {
    (repeated.*x).clear();
    for (std::size_t row = 0; row < (grouped.*x).size(); row += 64)
      for (int copy = 0; copy < 2; ++copy)
        (repeated.*x)
            .insert((repeated.*x).end(), (grouped.*x).begin() + static_cast<std::ptrdiff_t>(row),
                    (grouped.*x).begin() + static_cast<std::ptrdiff_t>(row) + 64);
  }
  const attention_result a = run<recipe::mx32>(grouped), b = run<recipe::mx32>(repeated);
  CHECK(a.o == b.o);
  CHECK(a.dq == b.dq);
  for (std::size_t i = 0; i < a.dk.size(); ++i) {
    const std::size_t first = i / 64 * 128 + i % 64;  // the two copies of the head
    CHECK(std::fabs(a.dk[i] - (b.dk[first] + b.dk[first + 64])) < 1e-5);
  }
}

TEST_CASE_TEMPLATE("a packed document is computed as if it were alone", Recipe, recipe::mx32, recipe::token,
                   recipe::tile, recipe::tensor, recipe::bf16, recipe::exact) {
  attention_case c;
  c.p.packed = true;
  c.p.b = 5;
  c.p.h_q = 2;
  c.p.mask.causal = octavo::causal_mask::bottom_right;
  c.p.key_centring = octavo::key_centring::batch;
  c.cu_q = {0, 50, 50, 61, 190, 200};
  c.cu_kv = {0, 70, 83, 83, 223, 230};
  c.p.total_q = 203;  // three rows, two keys behind the last document
  c.p.total_kv = 232;
  c.p.h_kv = 1;
  fill_normal(c, 8);
  const attention_result packed = run<Recipe>(c);

  const std::int64_t d = 64, h = 2;
  for (std::size_t i = 0; i + 1 < c.cu_q.size(); ++i) {
    attention_case alone = c;
    alone.p.packed = false;
    alone.p.b = 1;
    alone.p.s_q = c.cu_q[i + 1] - c.cu_q[i];
    alone.p.s_kv = c.cu_kv[i + 1] - c.cu_kv[i];
    const auto cut = [](numbers& x, std::int64_t first, std::int64_t last) {
      x = numbers(x.begin() + first, x.begin() + last);
    };
    cut(alone.q, c.cu_q[i] * h * d, c.cu_q[i + 1] * h * d);
    cut(alone.dout, c.cu_q[i] * h * d, c.cu_q[i + 1] * h * d);
    cut(alone.k, c.cu_kv[i] * d, c.cu_kv[i + 1] * d);
    cut(alone.v, c.cu_kv[i] * d, c.cu_kv[i + 1] * d);
    const attention_result r = run<Recipe>(alone);
    CHECK(std::equal(r.o.begin(), r.o.end(), packed.o.begin() + c.cu_q[i] * h * d));
    CHECK(std::equal(r.dq.begin(), r.dq.end(), packed.dq.begin() + c.cu_q[i] * h * d));
    CHECK(std::equal(r.dk.begin(), r.dk.end(), packed.dk.begin() + c.cu_kv[i] * d));
    CHECK(std::equal(r.dv.begin(), r.dv.end(), packed.dv.begin() + c.cu_kv[i] * d));
    for (std::int64_t head = 0; head < h; ++head)
      for (std::int64_t row = 0; row < alone.p.s_q; ++row)
        CHECK(r.lse[static_cast<std::size_t>(head * alone.p.s_q + row)] ==
              packed.lse[static_cast<std::size_t>(head * c.p.total_q + c.cu_q[i] + row)]);
  }
  CHECK(all_zero(part(packed.o, 200 * h * d, 3 * h * d)));
  CHECK(all_zero(part(packed.dq, 200 * h * d, 3 * h * d)));
  CHECK(all_zero(part(packed.dk, 230 * d, 2 * d)));
  CHECK(all_zero(part(packed.dv, 230 * d, 2 * d)));
  for (const float lse : part(packed.lse, 200, 3)) CHECK(lse == -INFINITY);
  CHECK(all_zero(part(packed.row_sum, c.p.total_q + 200, 3)));
}
