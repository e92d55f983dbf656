// SPDX-License-Identifier: Apache-2.0
// The lane-level schedules as passes: the same bits for every order of lanes and warps, and rows of dS that sum to zero.
#include <octavo/backends/sim/cuda_simt.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

using namespace octavo;
using octavo::backends::sim_cuda_simt;

namespace {

using floats = std::vector<float>;

struct run_results {
  floats o, lse, m, l, dq, dk, dv, row_sum, l1;
  bool operator==(const run_results&) const = default;
};

/// 2 query heads on 1 kv head, 150 queries, 200 keys, d 96, causal, keys with a bias and values with a common mode.
run_results run(const backends::sim::options& how) {
  using config = octavo::config<sim_cuda_simt, recipe::tile, delta::matched>;
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
  sim_cuda_simt::queue queue;
  queue.how = how;

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
