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
  };
  /// A chunk of queries with its memory.
  struct chunk {
    explicit chunk(const octavo::backend_entry& backend) : queue(backend), memory(queue) {}
    std::int64_t first = 0, last = 0;
    octavo::problem p;  // against all keys
    session queue;
    arena memory;
    octavo::backward_inputs in;
    std::deque<part> parts;
    floats o, m, l, lse;

    std::int64_t statistics() const { return p.b * p.h_q * p.s_q; }
    tensor_shape q_side(std::int64_t d) const { return {p.b, p.s_q, p.h_q, d}; }
  };

  void queries(std::int64_t first, std::int64_t last) {
    chunk x(on_.backend);
    x.first = first, x.last = last, x.p = case_.p;
    x.p.s_q = last - first;
    x.p.shard = {first, 0, case_.p.s_q, case_.p.s_kv};
    const auto rows = [&](const floats& values, std::int64_t d) {
      return x.memory.put(tokens(values, case_.q_side(d), first, last), x.p.element, x.q_side(d));
    };
    x.in.q = rows(case_.q, x.p.d_qk), x.in.dout = rows(case_.dout, x.p.d_v);
    x.in.key_shift = x.memory.put(case_.key_shift);
    forward(x);
    if (!on_.reads_o()) sums_of_delta(x);
    backward(x);
    collect(x);
  }

  void forward(chunk& x) {
    std::vector<octavo::partial_forward> partial;
    for (std::size_t i = 0; i + 1 < kv_.size(); ++i) {
      part& y = x.parts.emplace_back();
      y.first = kv_[i], y.last = kv_[i + 1], y.p = x.p;
      y.p.s_kv = y.last - y.first, y.p.shard.kv_begin = y.first;
      const auto keys = [&](const floats& values, std::int64_t d) {
        return x.memory.put(tokens(values, case_.kv_side(d), y.first, y.last), y.p.element, kv_side(y, d));
      };
      octavo::forward_inputs in;
      in.q = x.in.q, in.key_shift = x.in.key_shift;
      in.k = y.k = keys(case_.k, y.p.d_qk), in.v = y.v = keys(case_.v, y.p.d_v);
      const octavo::forward_outputs out = outputs(x, y.o, y.m, y.l, y.lse);
      call(x, y.p, octavo::pass::forward, [&](auto w) { return on_.engine.forward(x.queue.queue(), y.p, in, out, w); });
      partial.push_back({out.o, out.m, out.l, out.lse});
    }
    const octavo::forward_outputs merged = outputs(x, x.o, x.m, x.l, x.lse);
    call(x, x.p, octavo::pass::combine, [&](auto w) {
      return on_.engine.combine(x.queue.queue(), x.p, partial.data(), static_cast<int>(partial.size()), merged, w);
    });
    x.in.m = merged.m, x.in.l = merged.l, x.in.o = merged.o;
  }
  static octavo::forward_outputs outputs(chunk& x, floats& o, floats& m, floats& l, floats& lse) {
    octavo::forward_outputs out;
    out.o = x.memory.take(o, "O", octavo::dtype::f32, x.q_side(x.p.d_v));
    out.m = x.memory.take(m, "M", x.statistics()), out.l = x.memory.take(l, "l", x.statistics());
    out.lse = x.memory.take(lse, "LSE", x.statistics());
    return out;
  }

  void sums_of_delta(chunk& x) {
    x.in.delta_shift = x.memory.put(tokens(case_.delta_shift, statistics_shape(case_), x.first, x.last));
    for (part& y : x.parts) {
      x.in.k = y.k, x.in.v = y.v;
      const octavo::delta_outputs out{x.memory.take(y.n, "n", x.statistics()),
                                      x.memory.take(y.sum, "sum", x.statistics())};
      call(x, y.p, octavo::pass::delta,
           [&](auto w) { return on_.engine.delta_sums(x.queue.queue(), y.p, x.in, out, w); });
    }
    check(x);
    floats n(static_cast<std::size_t>(x.statistics())), sum(n.size());
    for (const part& y : x.parts)
      for (std::size_t i = 0; i < n.size(); ++i) n[i] += y.n[i], sum[i] += y.sum[i];
    x.in.delta_n = x.memory.put(n), x.in.delta_sum = x.memory.put(sum);
  }

  void backward(chunk& x) {
    for (part& y : x.parts) {
      y.p.delta_halves = !on_.reads_o();
      x.in.k = y.k, x.in.v = y.v;
      octavo::backward_outputs out;
      out.dq = x.memory.take(y.dq, "dQ", octavo::dtype::f32, x.q_side(y.p.d_qk));
      out.dk = x.memory.take(y.dk, "dK", octavo::dtype::f32, kv_side(y, y.p.d_qk));
      out.dv = x.memory.take(y.dv, "dV", octavo::dtype::f32, kv_side(y, y.p.d_v));
      call(x, y.p, octavo::pass::backward,
           [&](auto w) { return on_.engine.backward(x.queue.queue(), y.p, x.in, out, w); });
    }
    check(x);
  }

  void collect(const chunk& x) {
    add_tokens(result.o, case_.q_side(x.p.d_v), x.first, x.last, x.o);
    add_tokens(result.lse, statistics_shape(case_), x.first, x.last, x.lse);
    for (const part& y : x.parts) {
      add_tokens(result.dq, case_.q_side(x.p.d_qk), x.first, x.last, y.dq);
      add_tokens(result.dk, case_.kv_side(x.p.d_qk), y.first, y.last, y.dk);
      add_tokens(result.dv, case_.kv_side(x.p.d_v), y.first, y.last, y.dv);
    }
  }

  template <class Pass>
  void call(const chunk& x, const octavo::problem& p, octavo::pass which, const Pass& pass) const {
    const std::size_t size = on_.engine.workspace_size(p, which);
    const device_memory scratch(x.queue, size);
    const octavo::status s = pass(octavo::workspace{scratch.data(), size});
    if (!s.ok()) FAIL_CHECK(std::string(s.message.view()));
    x.queue.synchronise();
  }
  static void check(chunk& x) {
    for (const std::string& v : x.memory.collect()) FAIL_CHECK(v);
  }
  static tensor_shape kv_side(const part& y, std::int64_t d) { return {y.p.b, y.p.s_kv, y.p.h_kv, d}; }
  static std::size_t size(const tensor_shape& x) { return static_cast<std::size_t>(x.rows() * x.d); }

  const candidate& on_;
  const test_case& case_;
  const cuts& kv_;
};

}  // namespace octavo_tests
