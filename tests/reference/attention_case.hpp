// SPDX-License-Identifier: Apache-2.0
// One attention problem with its data, and what the reference makes of it.
#pragma once

#include <octavo/backends/reference/backend.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace reference_tests {

using numbers = std::vector<float>;

/// A tensor's memory in T.
class buffer {
 public:
  buffer() = default;
  buffer(octavo::dtype type, std::size_t size) : type_(type), bytes_(size * octavo::bytes_of(type), 0xff) {}
  buffer(octavo::dtype type, const numbers& values) : buffer(type, values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i) store(i, values[i]);
  }
  octavo::tensor view(std::int64_t s, std::int64_t h, std::int64_t d) {
    return octavo::contiguous(static_cast<void*>(bytes_.data()), type_, s, h, d);
  }
  numbers values() const {
    numbers out(bytes_.size() / octavo::bytes_of(type_));
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(
          octavo::backends::reference_math::load_element(bytes_.data(), type_, static_cast<std::int64_t>(i)));
    return out;
  }

 private:
  void store(std::size_t i, float x) {
    octavo::backends::reference_math::store_element(bytes_.data(), type_, static_cast<std::int64_t>(i), x);
  }
  octavo::dtype type_ = octavo::dtype::f32;
  std::vector<std::uint8_t> bytes_;
};

/// Inputs as floats; they are rounded to p.element on the way in. Sizes follow p (see fill_normal).
struct attention_case {
  octavo::problem p;
  numbers q, k, v, dout, sink, key_shift;
  std::vector<std::int32_t> cu_q, cu_kv;

  std::int64_t q_rows() const { return p.stat_rows(); }
  std::int64_t kv_rows() const { return p.packed ? p.total_kv : p.b * p.s_kv; }
  std::int64_t q_stride_rows() const { return p.packed ? p.total_q : p.s_q; }
  std::int64_t kv_stride_rows() const { return p.packed ? p.total_kv : p.s_kv; }
};

inline numbers normal(std::int64_t count, std::mt19937& random, float scale = 1) {
  std::normal_distribution<float> gauss;
  numbers x(static_cast<std::size_t>(count));
  for (float& value : x) value = scale * gauss(random);
  return x;
}

/// Standard normal inputs of the sizes of c.p.
inline void fill_normal(attention_case& c, unsigned seed) {
  std::mt19937 random(seed);
  c.q = normal(c.q_rows() * c.p.h_q * c.p.d_qk, random);
  c.k = normal(c.kv_rows() * c.p.h_kv * c.p.d_qk, random);
  c.v = normal(c.kv_rows() * c.p.h_kv * c.p.d_v, random);
  c.dout = normal(c.q_rows() * c.p.h_q * c.p.d_v, random);
  if (c.p.sink) c.sink = normal(c.p.h_q, random);
}

struct attention_result {
  numbers o, lse, m, l, residual;
  numbers dq, dk, dv, dsink, delta, row_sum, l1;
};

template <class Recipe, class Delta>
using reference_config = octavo::config<octavo::backends::reference, Recipe, Delta>;

/// Forward and, unless there is no dO, backward. O (and so what a delta reads) is in T, all other results in f32.
/// Everything that is written starts as NaN.
template <class Recipe, class Delta = octavo::delta::matched>
attention_result run(const attention_case& c) {
  using config = reference_config<Recipe, Delta>;
  const octavo::problem& p = c.p;
  const auto q_size = static_cast<std::size_t>(c.q_rows() * p.h_q),
             kv_size = static_cast<std::size_t>(c.kv_rows() * p.h_kv);
  const auto d_qk = static_cast<std::size_t>(p.d_qk), d_v = static_cast<std::size_t>(p.d_v);
  buffer q(p.element, c.q), k(p.element, c.k), v(p.element, c.v), dout(p.element, c.dout);
  buffer o(p.element, q_size * d_v), residual(p.element, q_size * d_v);
  buffer dq(octavo::dtype::f32, q_size * d_qk), dk(octavo::dtype::f32, kv_size * d_qk),
      dv(octavo::dtype::f32, kv_size * d_v);

  attention_result r;
  for (numbers* x : {&r.lse, &r.m, &r.l, &r.delta, &r.row_sum, &r.l1}) x->assign(q_size, NAN);
  r.dsink.assign(static_cast<std::size_t>(p.h_q), NAN);

  octavo::forward_inputs in;
  in.q = q.view(c.q_stride_rows(), p.h_q, p.d_qk);
  in.k = k.view(c.kv_stride_rows(), p.h_kv, p.d_qk);
  in.v = v.view(c.kv_stride_rows(), p.h_kv, p.d_v);
  if (p.packed)
    in.cu_seqlens_q = octavo::offsets_of(c.cu_q.data()), in.cu_seqlens_kv = octavo::offsets_of(c.cu_kv.data());
  if (p.sink) in.sink = c.sink.data();
  if (p.key_centring == octavo::key_centring::given) in.key_shift = c.key_shift.data();
  octavo::forward_outputs out;
  out.o = o.view(c.q_stride_rows(), p.h_q, p.d_v);
  out.lse = r.lse.data(), out.m = r.m.data(), out.l = r.l.data();
  if (p.o_residual) out.o_residual = residual.view(c.q_stride_rows(), p.h_q, p.d_v);

  octavo::backends::reference::queue queue{2};
  const octavo::status forward = octavo::attention_forward<config>(queue, p, in, out, {});
  REQUIRE_MESSAGE(forward.ok(), std::string(forward.message.view()));
  r.o = o.values();
  if (p.o_residual) r.residual = residual.values();
  if (c.dout.empty() && !c.q.empty()) return r;

  octavo::backward_inputs back;
  back.q = in.q, back.k = in.k, back.v = in.v;
  back.dout = dout.view(c.q_stride_rows(), p.h_q, p.d_v);
  back.o = out.o, back.o_residual = out.o_residual;
  back.m = out.m, back.l = out.l;
  back.cu_seqlens_q = in.cu_seqlens_q, back.cu_seqlens_kv = in.cu_seqlens_kv;
  back.sink = in.sink, back.key_shift = in.key_shift;
  octavo::backward_outputs grad;
  grad.dq = dq.view(c.q_stride_rows(), p.h_q, p.d_qk);
  grad.dk = dk.view(c.kv_stride_rows(), p.h_kv, p.d_qk);
  grad.dv = dv.view(c.kv_stride_rows(), p.h_kv, p.d_v);
  grad.dsink = r.dsink.data();
  grad.delta = r.delta.data(), grad.row_sum = r.row_sum.data(), grad.l1 = r.l1.data();
  const octavo::status backward = octavo::attention_backward<config>(queue, p, back, grad, {});
  REQUIRE_MESSAGE(backward.ok(), std::string(backward.message.view()));
  r.dq = dq.values(), r.dk = dk.values(), r.dv = dv.values();
  return r;
}

/// |x - truth| / |truth| in the L2 norm.
inline double relative_error(std::span<const float> x, std::span<const float> truth) {
  REQUIRE(x.size() == truth.size());
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    error += (double{x[i]} - truth[i]) * (double{x[i]} - truth[i]);
    norm += double{truth[i]} * truth[i];
  }
  return norm == 0 ? std::sqrt(error) : std::sqrt(error / norm);
}

/// sum_i |sum_j dS_ij| / sum_ij |dS_ij|: zero in exact arithmetic.
inline double row_sum_ratio(const attention_result& r) {
  double sums = 0, magnitudes = 0;
  for (const float x : r.row_sum) sums += std::fabs(x);
  for (const float x : r.l1) magnitudes += x;
  return sums / magnitudes;
}

inline bool all_finite(std::span<const float> x) {
  for (const float value : x)
    if (!std::isfinite(value)) return false;
  return true;
}
inline bool all_zero(std::span<const float> x) {
  for (const float value : x)
    if (value != 0) return false;
  return true;
}

/// `count` elements from the first on.
inline std::span<const float> part(const numbers& x, std::int64_t first, std::int64_t count) {
  return std::span(x).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

}  // namespace reference_tests
