// SPDX-License-Identifier: Apache-2.0
// One sequence computed in parts, as by the ranks of a context-parallel job: every chunk of queries meets the chunks of
// keys one at a time, and what the parts give is put together by the library's own means.
//
//     forward     partial O, M, l, LSE per chunk of keys, merged by combine
//     delta       the matched sums per chunk of keys, added (the all-reduce); O of the whole for the policies that read
//     it backward    relative to the merged M and l: dQ is a sum over chunks of keys, dK and dV over chunks of queries
#pragma once

#include <deque>

#include "support/slices.hpp"
#include "support/sweep.hpp"

namespace octavo_tests {

using cuts = std::vector<std::int64_t>;  // where chunks begin, and the length: 0, ..., s

class split_run {
 public:
  split_run(const candidate& on, const test_case& c, const cuts& q, const cuts& kv) : on_(on), case_(c), kv_(kv) {
    const tensor_shape k = c.kv_side(c.p.d_qk), v = c.kv_side(c.p.d_v);
    result.o.assign(size(c.q_side(c.p.d_v)), 0), result.dq.assign(size(c.q_side(c.p.d_qk)), 0);
    result.dk.assign(size(k), 0), result.dv.assign(size(v), 0);
    result.lse.assign(size(statistics_shape(c)), 0);
    for (std::size_t i = 0; i + 1 < q.size(); ++i) queries(q[i], q[i + 1]);
  }

  results result;  // O, LSE, dQ, dK, dV

 private:
  /// A chunk of keys as one chunk of queries sees it.
  struct part {
    std::int64_t first, last;
    octavo::problem p;
    octavo::const_tensor k, v;
    floats o, m, l, lse, n, sum, dq, dk, dv;
    octavo::partial_forward forward;
  };

  void queries(std::int64_t first, std::int64_t last) {
    const octavo::problem& whole = case_.p;
    const session queue(on_.backend);
    arena memory(queue);
    const auto shape = [&](std::int64_t s, std::int64_t h, std::int64_t d) { return tensor_shape{whole.b, s, h, d}; };
    const auto q_part = [&](const floats& x, std::int64_t d) {
      return memory.put(tokens(x, case_.q_side(d), first, last), whole.element, shape(last - first, whole.h_q, d));
    };
    octavo::problem rows = whole;
    rows.s_q = last - first;
    rows.shard = {first, 0, whole.s_q, whole.s_kv};
    const std::int64_t statistics = rows.b * rows.h_q * rows.s_q;
    octavo::backward_inputs in;
    in.q = q_part(case_.q, whole.d_qk), in.dout = q_part(case_.dout, whole.d_v);
    in.key_shift = memory.put(case_.key_shift);

    std::deque<part> parts;
    std::vector<octavo::partial_forward> partial;
    for (std::size_t i = 0; i + 1 < kv_.size(); ++i) {
      part& x = parts.emplace_back();
      x.first = kv_[i], x.last = kv_[i + 1];
      x.p = rows;
      x.p.s_kv = x.last - x.first, x.p.shard.kv_begin = x.first;
      const auto kv_part = [&](const floats& values, std::int64_t d) {
        return memory.put(tokens(values, case_.kv_side(d), x.first, x.last), whole.element,
                          shape(x.p.s_kv, whole.h_kv, d));
      };
      octavo::forward_inputs forward;
      forward.q = in.q, forward.key_shift = in.key_shift;
      forward.k = x.k = kv_part(case_.k, whole.d_qk), forward.v = x.v = kv_part(case_.v, whole.d_v);
      octavo::forward_outputs out;
      out.o = memory.take(x.o, "O", octavo::dtype::f32, shape(rows.s_q, whole.h_q, whole.d_v));
      out.m = memory.take(x.m, "M", statistics), out.l = memory.take(x.l, "l", statistics);
      out.lse = memory.take(x.lse, "LSE", statistics);
      call(queue, x.p, octavo::pass::forward,
           [&](auto w) { return on_.engine.forward(queue.queue(), x.p, forward, out, w); });
      partial.push_back({out.o, out.m, out.l, out.lse});
    }

    floats o, m, l, lse;
    octavo::forward_outputs merged;
    merged.o = memory.take(o, "O", octavo::dtype::f32, shape(rows.s_q, whole.h_q, whole.d_v));
    merged.m = memory.take(m, "M", statistics), merged.l = memory.take(l, "l", statistics);
    merged.lse = memory.take(lse, "LSE", statistics);
    rows.shard = {first, 0, whole.s_q, whole.s_kv};
    call(queue, rows, octavo::pass::combine, [&](auto w) {
      return on_.engine.combine(queue.queue(), rows, partial.data(), static_cast<int>(partial.size()), merged, w);
    });
    in.m = merged.m, in.l = merged.l, in.o = merged.o;

    if (!on_.reads_o()) {
      in.delta_shift = memory.put(tokens(case_.delta_shift, statistics_shape(case_), first, last));
      floats n(static_cast<std::size_t>(statistics)), sum(n.size());
      for (part& x : parts) {
        in.k = x.k, in.v = x.v;
        const octavo::delta_outputs halves{memory.take(x.n, "n", statistics), memory.take(x.sum, "sum", statistics)};
        call(queue, x.p, octavo::pass::delta,
             [&](auto w) { return on_.engine.delta_sums(queue.queue(), x.p, in, halves, w); });
      }
      check(memory);
      for (const part& x : parts)
        for (std::size_t i = 0; i < n.size(); ++i) n[i] += x.n[i], sum[i] += x.sum[i];
      in.delta_n = memory.put(n), in.delta_sum = memory.put(sum);
    }

    for (part& x : parts) {
      x.p.delta_halves = !on_.reads_o();
      in.k = x.k, in.v = x.v;
      octavo::backward_outputs out;
      out.dq = memory.take(x.dq, "dQ", octavo::dtype::f32, shape(rows.s_q, whole.h_q, whole.d_qk));
      out.dk = memory.take(x.dk, "dK", octavo::dtype::f32, shape(x.p.s_kv, whole.h_kv, whole.d_qk));
      out.dv = memory.take(x.dv, "dV", octavo::dtype::f32, shape(x.p.s_kv, whole.h_kv, whole.d_v));
      call(queue, x.p, octavo::pass::backward,
           [&](auto w) { return on_.engine.backward(queue.queue(), x.p, in, out, w); });
    }
    check(memory);
    add_tokens(result.o, case_.q_side(whole.d_v), first, last, o);
    add_tokens(result.lse, statistics_shape(case_), first, last, lse);
    for (const part& x : parts) {
      add_tokens(result.dq, case_.q_side(whole.d_qk), first, last, x.dq);
      add_tokens(result.dk, case_.kv_side(whole.d_qk), x.first, x.last, x.dk);
      add_tokens(result.dv, case_.kv_side(whole.d_v), x.first, x.last, x.dv);
    }
  }

  template <class Pass>
  void call(const session& queue, const octavo::problem& p, octavo::pass which, const Pass& pass) const {
    const auto bytes = static_cast<std::int64_t>(on_.engine.workspace_size(p, which));
    const array_memory<std::uint8_t> scratch(queue, bytes);
    const octavo::status s = pass(octavo::workspace{scratch.data(), static_cast<std::size_t>(bytes)});
    if (!s.ok()) FAIL_CHECK(std::string(s.message.view()));
    queue.synchronise();
  }
  static void check(arena& memory) {
    for (const std::string& v : memory.collect()) FAIL_CHECK(v);
  }
  static std::size_t size(const tensor_shape& x) { return static_cast<std::size_t>(x.rows() * x.d); }

  const candidate& on_;
  const test_case& case_;
  const cuts& kv_;
};

}  // namespace octavo_tests
