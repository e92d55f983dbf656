// SPDX-License-Identifier: Apache-2.0
#include "baseline.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>

namespace cli {
namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using rows_of = Eigen::Map<matrix, 0, Eigen::OuterStride<>>;
using const_rows_of = Eigen::Map<const matrix, 0, Eigen::OuterStride<>>;

/// n rows from `first` on of one head of a tensor [b, s, h, d].
rows_of head(std::vector<float>& t, std::int64_t s, std::int64_t h, std::int64_t d, std::int64_t batch, std::int64_t i,
             std::int64_t first, std::int64_t n) {
  return {t.data() + ((batch * s + first) * h + i) * d, n, d, Eigen::OuterStride<>(h * d)};
}
const_rows_of head(const std::vector<float>& t, std::int64_t s, std::int64_t h, std::int64_t d, std::int64_t batch,
                   std::int64_t i, std::int64_t first, std::int64_t n) {
  return {t.data() + ((batch * s + first) * h + i) * d, n, d, Eigen::OuterStride<>(h * d)};
}

/// A block of query rows of one head: whole heads where there are enough of them to keep every thread busy.
struct task {
  std::int64_t batch, head, first, rows;
};

std::vector<task> tasks_of(const octavo::problem& p, int threads) {
  const std::int64_t heads = std::max<std::int64_t>(p.b * p.h_q, 1);
  const std::int64_t parts = std::min<std::int64_t>((threads + heads - 1) / heads, std::max<std::int64_t>(p.s_q, 1));
  const std::int64_t rows = (p.s_q + parts - 1) / parts;
  std::vector<task> tasks;
  for (std::int64_t b = 0; b < p.b; ++b)
    for (std::int64_t h = 0; h < p.h_q; ++h)
      for (std::int64_t first = 0; first < p.s_q; first += rows)
        tasks.push_back({b, h, first, std::min(rows, p.s_q - first)});
  return tasks;
}

template <class Work>
void run(const std::vector<task>& tasks, int threads, Work work) {
  std::atomic<std::size_t> next{0};
  const auto loop = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) work(tasks[i]);
  };
  std::vector<std::jthread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(loop);
  loop();
}

/// The keys that a row sees begin at 0 and end here.
std::int64_t keys_seen(const octavo::problem& p, std::int64_t row) {
  if (p.mask.causal == octavo::causal_mask::none) return p.s_kv;
  const std::int64_t shift = p.mask.causal == octavo::causal_mask::bottom_right ? p.s_kv - p.s_q : 0;
  return std::clamp<std::int64_t>(row + shift + 1, 0, p.s_kv);
}

}  // namespace

void baseline::forward(int threads) {
  o.resize(static_cast<std::size_t>(p.b * p.s_q * p.h_q * p.d_v));
  lse.resize(static_cast<std::size_t>(p.b * p.h_q * p.s_q));
  run(tasks_of(p, threads), threads, [this](const task& t) {
    const std::int64_t kv = t.head / p.group();
    const auto k_h = head(std::as_const(k), p.s_kv, p.h_kv, p.d_qk, t.batch, kv, 0, p.s_kv);
    const auto v_h = head(std::as_const(v), p.s_kv, p.h_kv, p.d_v, t.batch, kv, 0, p.s_kv);
    const auto q_h = head(std::as_const(q), p.s_q, p.h_q, p.d_qk, t.batch, t.head, t.first, t.rows);
    matrix s = p.scale() * (q_h * k_h.transpose());
    float* row_lse = lse.data() + (t.batch * p.h_q + t.head) * p.s_q + t.first;
    for (std::int64_t i = 0; i < t.rows; ++i) {
      const std::int64_t n = keys_seen(p, t.first + i);
      auto seen = s.row(i).head(n).array();
      s.row(i).tail(p.s_kv - n).setZero();
      if (n == 0) {
        row_lse[i] = -INFINITY;
        continue;
      }
      const float largest = seen.maxCoeff();
      seen = (seen - largest).exp();
      const float sum = seen.sum();
      seen /= sum;
      row_lse[i] = largest + std::log(sum);
    }
    head(o, p.s_q, p.h_q, p.d_v, t.batch, t.head, t.first, t.rows).noalias() = s * v_h;
  });
}

void baseline::backward(int threads) {
  dq.resize(q.size());
  dk.assign(k.size(), 0.0f);
  dv.assign(v.size(), 0.0f);
  std::vector<std::mutex> locks(static_cast<std::size_t>(p.b * p.h_kv));  // one per head of dK and dV
  run(tasks_of(p, threads), threads, [&, this](const task& t) {
    const std::int64_t kv = t.head / p.group();
    const auto k_h = head(std::as_const(k), p.s_kv, p.h_kv, p.d_qk, t.batch, kv, 0, p.s_kv);
    const auto v_h = head(std::as_const(v), p.s_kv, p.h_kv, p.d_v, t.batch, kv, 0, p.s_kv);
    const auto q_h = head(std::as_const(q), p.s_q, p.h_q, p.d_qk, t.batch, t.head, t.first, t.rows);
    const auto o_h = head(std::as_const(o), p.s_q, p.h_q, p.d_v, t.batch, t.head, t.first, t.rows);
    const auto dout_h = head(std::as_const(dout), p.s_q, p.h_q, p.d_v, t.batch, t.head, t.first, t.rows);
    const float* row_lse = lse.data() + (t.batch * p.h_q + t.head) * p.s_q + t.first;

    matrix pr = p.scale() * (q_h * k_h.transpose());
    for (std::int64_t i = 0; i < t.rows; ++i) {
      const std::int64_t n = keys_seen(p, t.first + i);
      pr.row(i).head(n) = (pr.row(i).head(n).array() - row_lse[i]).exp();
      pr.row(i).tail(p.s_kv - n).setZero();
    }
    const matrix dv_part = pr.transpose() * dout_h;
    matrix ds = dout_h * v_h.transpose();
    const Eigen::VectorXf delta = (dout_h.array() * o_h.array()).rowwise().sum();
    ds = p.scale() * pr.array() * (ds.array().colwise() - delta.array());
    head(dq, p.s_q, p.h_q, p.d_qk, t.batch, t.head, t.first, t.rows).noalias() = ds * k_h;
    const matrix dk_part = ds.transpose() * q_h;

    const std::lock_guard lock(locks[static_cast<std::size_t>(t.batch * p.h_kv + kv)]);
    head(dk, p.s_kv, p.h_kv, p.d_qk, t.batch, kv, 0, p.s_kv) += dk_part;
    head(dv, p.s_kv, p.h_kv, p.d_v, t.batch, kv, 0, p.s_kv) += dv_part;
  });
}

}  // namespace cli
