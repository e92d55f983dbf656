// SPDX-License-Identifier: Apache-2.0
// One small problem in memory that a simulated launch knows exactly: every tensor is a buffer of its own, so that an
// access one byte past its end is seen.
#pragma once

#include <octavo/algorithm/prepare.hpp>
#include <octavo/backend/support.hpp>
#include <octavo/backends/sim/global_memory.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/tensor/arguments.hpp>
#include <octavo/tensor/problem.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace sim_checked {

namespace sim = octavo::backends::sim;

/// Elements in global memory, 256-byte aligned as a device's are, 0xff at first.
template <class T>
class device_array {
 public:
  explicit device_array(std::int64_t count)
      : size_(static_cast<std::size_t>(count)),
        memory_((size_ * sizeof(T) + 2 * alignment) / sizeof(block) + 1),
        known_(data(), size_ * sizeof(T)) {
    std::fill_n(reinterpret_cast<unsigned char*>(data()), size_ * sizeof(T), static_cast<unsigned char>(0xff));
  }
  T* data() { return reinterpret_cast<T*>(memory_.data()); }
  std::vector<T> values() { return {data(), data() + size_}; }
  std::size_t bytes() const { return size_ * sizeof(T); }

 private:
  static constexpr std::size_t alignment = 256;
  struct alignas(alignment) block {
    unsigned char bytes[alignment];
  };
  std::size_t size_;
  std::vector<block> memory_;
  sim::global_buffer known_;
};

/// Inputs in BF16 and results in FP32, b = 1 or packed documents with their offsets.
struct small_problem {
  octavo::problem p;
  std::int64_t q_tokens = p.packed ? p.total_q : p.s_q, kv_tokens = p.packed ? p.total_kv : p.s_kv;
  std::int64_t rows = q_tokens * p.h_q;
  device_array<octavo::bf16> q, k, v, dout;
  device_array<float> o, lse, m, l, dq, dk, dv, row_sum, l1;
  device_array<std::int32_t> cu_q, cu_kv;

  template <class T>
  static auto view(device_array<T>& x, std::int64_t tokens, std::int64_t h, std::int64_t d) {
    return octavo::contiguous(x.data(), tokens, h, d);
  }
  static octavo::offsets offsets_in(device_array<std::int32_t>& x) { return {x.bytes() > 0 ? x.data() : nullptr}; }

  small_problem(const octavo::problem& of, bool with_nan, const std::vector<std::int32_t>& offsets_q = {},
                const std::vector<std::int32_t>& offsets_kv = {})
      : p(of),
        q(rows * p.d_qk),
        k(kv_tokens * p.h_kv * p.d_qk),
        v(kv_tokens * p.h_kv * p.d_v),
        dout(rows * p.d_v),
        o(rows * p.d_v),
        lse(rows),
        m(rows),
        l(rows),
        dq(rows * p.d_qk),
        dk(kv_tokens * p.h_kv * p.d_qk),
        dv(kv_tokens * p.h_kv * p.d_v),
        row_sum(rows),
        l1(rows),
        cu_q(static_cast<std::int64_t>(offsets_q.size())),
        cu_kv(static_cast<std::int64_t>(offsets_kv.size())) {
    std::copy(offsets_q.begin(), offsets_q.end(), cu_q.data());
    std::copy(offsets_kv.begin(), offsets_kv.end(), cu_kv.data());
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (auto* x : {&q, &k, &v, &dout})
      for (std::size_t i = 0; i < x->bytes() / sizeof(octavo::bf16); ++i)
        x->data()[i] = octavo::bf16::nearest_even(normal(random));
    if (!with_nan) return;
    // The rare paths, too: something that is not finite in each tensor. In V and dO in the last tile, so that only the
    // last barrier stands between who notes it and who looks.
    const octavo::bf16 nan = octavo::bf16::nearest_even(std::numeric_limits<float>::quiet_NaN());
    const std::int64_t channel = 5, last_q = offsets_q.empty() ? p.s_q : offsets_q.back(),
                       last_kv = offsets_kv.empty() ? p.s_kv : offsets_kv.back();
    q.data()[60 * p.h_q * p.d_qk + channel] = k.data()[61 * p.h_kv * p.d_qk + channel] = nan;
    v.data()[(last_kv - 2) * p.h_kv * p.d_v + channel] = dout.data()[(last_q - 2) * p.h_q * p.d_v + channel] = nan;
  }

  octavo::forward_inputs forward_inputs() {
    octavo::forward_inputs in;
    in.q = view(q, q_tokens, p.h_q, p.d_qk), in.k = view(k, kv_tokens, p.h_kv, p.d_qk);
    in.v = view(v, kv_tokens, p.h_kv, p.d_v);
    in.cu_seqlens_q = offsets_in(cu_q), in.cu_seqlens_kv = offsets_in(cu_kv);
    return in;
  }
  octavo::forward_outputs forward_outputs() {
    return {.o = view(o, q_tokens, p.h_q, p.d_v), .lse = lse.data(), .m = m.data(), .l = l.data()};
  }
  octavo::backward_inputs backward_inputs() {
    octavo::backward_inputs in;
    in.q = view(q, q_tokens, p.h_q, p.d_qk), in.k = view(k, kv_tokens, p.h_kv, p.d_qk);
    in.v = view(v, kv_tokens, p.h_kv, p.d_v), in.dout = view(dout, q_tokens, p.h_q, p.d_v);
    in.o = view(o, q_tokens, p.h_q, p.d_v);
    in.cu_seqlens_q = offsets_in(cu_q), in.cu_seqlens_kv = offsets_in(cu_kv);
    in.m = m.data(), in.l = l.data();
    return in;
  }
  octavo::backward_outputs backward_outputs() {
    octavo::backward_outputs out;
    out.dq = view(dq, q_tokens, p.h_q, p.d_qk), out.dk = view(dk, kv_tokens, p.h_kv, p.d_qk);
    out.dv = view(dv, kv_tokens, p.h_kv, p.d_v);
    out.row_sum = row_sum.data(), out.l1 = l1.data();
    return out;
  }
  /// Every result, to be compared with those of another run.
  std::vector<float> results() {
    std::vector<float> all;
    for (auto* x : {&o, &lse, &m, &l, &dq, &dk, &dv, &row_sum, &l1}) {
      const std::vector<float> values = x->values();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
};

/// Forward and backward of Passes::forward and ::backward, which are those of backends of blocks; the message of a
/// failure, or nothing. Each has scratch memory of its own, of the size that it asks for.
template <class Passes, class Queue>
std::string run_passes(small_problem& on, Queue& queue) {
  using octavo::detail::carver;
  const octavo::forward_inputs in = on.forward_inputs();
  const octavo::forward_outputs out = on.forward_outputs();
  const octavo::backward_inputs back = on.backward_inputs();
  {
    carver size(nullptr);
    typename Passes::forward{}.carve(size, on.p, in, out);
    device_array<char> scratch(static_cast<std::int64_t>(size.used()));
    carver memory(scratch.data());
    typename Passes::forward pass;
    pass.carve(memory, on.p, in, out);
    if (const octavo::status done = pass.run(queue, on.p, in, out); !done.ok()) return done.message.c_str();
  }
  carver size(nullptr);
  typename Passes::backward{}.carve(size, on.p, back, {}, true);
  device_array<char> scratch(static_cast<std::int64_t>(size.used()));
  carver memory(scratch.data());
  typename Passes::backward pass;
  pass.carve(memory, on.p, back, {}, true);
  return pass.run(queue, on.p, back, on.backward_outputs()).message.c_str();
}

/// Runs Passes of Backend on what make() gives under so many seeds: no fault, and the same bits.
template <class Passes, class Backend, class Make>
void check_seeds(Make make, std::uint64_t seeds) {
  std::vector<float> first;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    small_problem problem = make();
    typename Backend::queue queue;
    queue.how.seed = seed;
    queue.how.resident = 3;
    queue.how.multiprocessors = seed == 0 ? 1 : 2;  // a block that stays draws all tiles, or some
    CHECK(run_passes<Passes>(problem, queue) == "");
    const std::vector<float> results = problem.results();
    if (first.empty()) first = results;
    CHECK(std::memcmp(first.data(), results.data(), first.size() * sizeof(float)) == 0);
    for (const octavo::kernel_counts& k : queue.kernels) CHECK(k.races_checked);
  }
}

}  // namespace sim_checked
