// SPDX-License-Identifier: Apache-2.0
// The lane-level schedules as passes: the same bits for every order of lanes and warps, rows of dS that sum to zero, and
// mx32 on a machine that no engine is made for yet.
#include <octavo/backends/cpu/backend.hpp>
#include <octavo/backends/cuda/simt/scaled_machine.hpp>
#include <octavo/backends/sim/cuda_simt.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

using namespace octavo;
using octavo::backends::sim_cuda_simt;

OCTAVO_BEGIN_CPU_NAMESPACE
/// mx32 on the scaled products of sm_120a.
struct sim_cuda_scaled : sim_lanes<nvidia::scaled_machine> {
  static constexpr const char* name() { return "sim-cuda-scaled"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};
OCTAVO_END_CPU_NAMESPACE

namespace {

using floats = std::vector<float>;

struct run_results {
  floats o, lse, m, l, dq, dk, dv, row_sum, l1;
  bool operator==(const run_results&) const = default;
};

/// 2 query heads on 1 kv head, 150 queries, 200 keys, d 96, causal, keys with a bias and values with a common mode.
template <class B, class Recipe>
run_results run(typename B::queue& queue) {
  using config = octavo::config<B, Recipe, delta::matched>;
  problem p;
  p.element = dtype::f32;
  p.b = 1, p.h_q = 2, p.h_kv = 1, p.s_q = 150, p.s_kv = 200, p.d_qk = p.d_v = 96;
  p.mask.causal = causal_mask::bottom_right;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t n, float mean) {
    floats x(static_cast<std::size_t>(n));
    for (float& v : x) v = normal(random) + mean;
    return x;
  };
  const std::int64_t q_size = p.s_q * p.h_q * 96, kv_size = p.s_kv * 96, rows = p.s_q * p.h_q;
  const floats q = draw(q_size, 0), k = draw(kv_size, 1), v = draw(kv_size, 3), dout = draw(q_size, 0);
  const auto empty = [](std::int64_t n) { return floats(static_cast<std::size_t>(n)); };
  run_results r{empty(q_size),  empty(rows),    empty(rows), empty(rows), empty(q_size),
                empty(kv_size), empty(kv_size), empty(rows), empty(rows)};
  std::vector<char> scratch(workspace_size<config>(p));
  forward_inputs in;
  in.q = contiguous(q.data(), p.s_q, p.h_q, 96);
  in.k = contiguous(k.data(), p.s_kv, 1, 96);
  in.v = contiguous(v.data(), p.s_kv, 1, 96);
  forward_outputs out;
  out.o = contiguous(r.o.data(), p.s_q, p.h_q, 96);
  out.lse = r.lse.data(), out.m = r.m.data(), out.l = r.l.data();
  const status forward = attention_forward<config>(queue, p, in, out, {scratch.data(), scratch.size()});
  CHECK_MESSAGE(forward.ok(), forward.message.c_str());

  backward_inputs back;
  back.q = in.q, back.k = in.k, back.v = in.v;
  back.dout = contiguous(dout.data(), p.s_q, p.h_q, 96);
  back.m = r.m.data(), back.l = r.l.data();
  backward_outputs gradients;
  gradients.dq = contiguous(r.dq.data(), p.s_q, p.h_q, 96);
  gradients.dk = contiguous(r.dk.data(), p.s_kv, 1, 96);
  gradients.dv = contiguous(r.dv.data(), p.s_kv, 1, 96);
  gradients.row_sum = r.row_sum.data(), gradients.l1 = r.l1.data();
  const status backward = attention_backward<config>(queue, p, back, gradients, {scratch.data(), scratch.size()});
  CHECK_MESSAGE(backward.ok(), backward.message.c_str());
  return r;
}
run_results run(const backends::sim::options& how) {
  sim_cuda_simt::queue queue;
  queue.how = how;
  return run<sim_cuda_simt, recipe::tile>(queue);
}

/// |a - b| / |b|
double apart(const floats& a, const floats& b) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    difference += (x - y) * (x - y), size += y * y;
  }
  return std::sqrt(difference / size);
}

}  // namespace

TEST_CASE("simt: results have the same bits whatever the order of lanes and warps") {
  using backends::sim::accumulation;
  const run_results first = run({.accumulator = accumulation::model});
  for (const std::uint64_t seed : {2u, 3u}) CHECK((run({.seed = seed, .accumulator = accumulation::model}) == first));
  CHECK_FALSE((run({.accumulator = accumulation::ideal}) == first));
}

TEST_CASE("simt: rows of dS sum to zero where delta is matched") {
  const run_results r = run({.accumulator = backends::sim::accumulation::model});
  double sums = 0, magnitudes = 0;
  for (std::size_t i = 0; i < r.l1.size(); ++i) sums += std::fabs(r.row_sum[i]), magnitudes += r.l1[i];
  CHECK(sums <= 1e-5 * magnitudes);
  CHECK(magnitudes > 0);
}

TEST_CASE("simt: mx32 on the scaled products of sm_120a gives what the generic loops give") {
  backends::sim_cuda_scaled::queue queue;
  const run_results r = run<backends::sim_cuda_scaled, recipe::mx32>(queue);
  std::int64_t scaled_products = 0;
  for (const kernel_counts& k : queue.kernels)
    for (const auto& [name, count] : k.matrix_instructions) scaled_products += count;
  CHECK(scaled_products > 0);
  backends::cpu::queue host;
  const run_results want = run<backends::cpu, recipe::mx32>(host);
  for (const auto field : {&run_results::o, &run_results::lse, &run_results::m, &run_results::l, &run_results::dq,
                           &run_results::dk, &run_results::dv})
    CHECK(apart(r.*field, want.*field) <= 1e-4);
}

namespace {

/// O and l of 128 queries over 4096 keys, d 64, values with a mean.
template <class B>
run_results run_long_rows(typename B::queue& queue) {
  using config = octavo::config<B, recipe::tile, delta::matched>;
  constexpr std::int64_t d = 64;
  problem p;
  p.element = dtype::f32;
  p.s_q = 128, p.s_kv = 4096, p.d_qk = p.d_v = d;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::int64_t rows, float mean) {
    floats x(static_cast<std::size_t>(rows * d));
    for (float& v : x) v = normal(random) + mean;
    return x;
  };
  const floats q = draw(p.s_q, 0), k = draw(p.s_kv, 0), v = draw(p.s_kv, 1);
  run_results r;
  r.o.resize(q.size()), r.lse.resize(128), r.m.resize(128), r.l.resize(128);
  std::vector<char> scratch(workspace_size<config>(p));
  forward_inputs in;
  in.q = contiguous(q.data(), p.s_q, 1, d);
  in.k = contiguous(k.data(), p.s_kv, 1, d), in.v = contiguous(v.data(), p.s_kv, 1, d);
  forward_outputs out;
  out.o = contiguous(r.o.data(), p.s_q, 1, d);
  out.lse = r.lse.data(), out.m = r.m.data(), out.l = r.l.data();
  const status forward = attention_forward<config>(queue, p, in, out, {scratch.data(), scratch.size()});
  CHECK_MESSAGE(forward.ok(), forward.message.c_str());
  return r;
}

}  // namespace

// A sum over all keys in such a unit would lose a sixteenth of O here.
TEST_CASE("simt: long rows on a unit that keeps 13 bits of a sum") {
  sim_cuda_simt::queue queue;
  queue.how.accumulator = backends::sim::accumulation::model;
  queue.how.mma_fraction_bits = 13;
  const run_results r = run_long_rows<sim_cuda_simt>(queue);
  backends::cpu::queue host;
  const run_results want = run_long_rows<backends::cpu>(host);
  // A product cuts each of 16 terms by half a unit of 2^-13 of the largest in the mean.
  constexpr double bound = 16 * 0.5 * 0x1p-13;
  CHECK(apart(r.l, want.l) <= bound);
  CHECK(apart(r.o, want.o) <= bound);
  CHECK(apart(r.l, want.l) > 0);
}
