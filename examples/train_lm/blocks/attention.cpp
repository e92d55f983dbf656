// SPDX-License-Identifier: Apache-2.0
#include "blocks/attention.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace train_lm {
namespace {

void round_to_bf16(in_ref x, std::vector<octavo::bf16>& y) {
  const index width = x.cols();
  for (index i = 0; i < x.rows(); ++i) {
    const float* from = x.row(i).data();
    octavo::bf16* to = y.data() + i * width;
    for (index c = 0; c < width; ++c) to[c] = octavo::bf16::nearest_even(from[c]);
  }
}

void widen(const std::vector<octavo::bf16>& x, out_ref y) {
  const index width = y.cols();
  for (index i = 0; i < y.rows(); ++i) {
    const octavo::bf16* from = x.data() + i * width;
    float* to = y.row(i).data();
    for (index c = 0; c < width; ++c) to[c] = static_cast<float>(from[c]);
  }
}

void require(const octavo::status& s) {
  if (!s) throw std::runtime_error(s.message.c_str());
}

}  // namespace

attention_context::attention_context(const arm& a, const model_shape& shape)
    : problem(problem_of(a, shape)), config(a) {
  constexpr std::size_t alignment = 64;  // what octavo asks of a workspace
  workspace.bytes = config.workspace_size(problem);
  memory_ = std::make_unique<std::byte[]>(workspace.bytes + alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
  workspace.data = memory_.get() + (alignment - address % alignment) % alignment;
}

attention::attention(const octavo::problem& p)
    : q(static_cast<std::size_t>(p.b * p.s_q * p.h_q * p.d_qk)),
      k(q),
      v(q),
      o(q),
      dout(q),
      o_residual_(p.o_residual ? q.size() : 0),
      m_(static_cast<std::size_t>(p.b * p.h_q * p.s_q)),
      l_(m_),
      row_sum_(m_),
      l1_(m_),
      dq_(p.b * p.s_q, p.h_q * p.d_qk),
      dk_(dq_),
      dv_(dq_) {}

void attention::forward(attention_context& context, in_ref qkv, out_ref result) {
  const octavo::problem& p = context.problem;
  const index width = p.h_q * p.d_qk;
  round_to_bf16(qkv.leftCols(width), q);
  round_to_bf16(qkv.middleCols(width, width), k);
  round_to_bf16(qkv.rightCols(width), v);

  const auto tensor = [&p](auto& x) { return octavo::contiguous(x.data(), p.s_q, p.h_q, p.d_qk); };
  const octavo::forward_inputs in{.q = tensor(q), .k = tensor(k), .v = tensor(v)};
  octavo::forward_outputs out{.o = tensor(o), .m = m_.data(), .l = l_.data()};
  if (p.o_residual) out.o_residual = tensor(o_residual_);
  require(context.config.forward(p, in, out, context.workspace));
  widen(o, result);
}

void attention::backward(attention_context& context, in_ref dresult, out_ref dqkv) {
  const octavo::problem& p = context.problem;
  const index width = p.h_q * p.d_qk;
  round_to_bf16(dresult, dout);

  const auto tensor = [&p](auto& x) { return octavo::contiguous(x.data(), p.s_q, p.h_q, p.d_qk); };
  octavo::backward_inputs in{.q = tensor(q), .k = tensor(k), .v = tensor(v), .dout = tensor(dout), .o = tensor(o)};
  in.m = m_.data();
  in.l = l_.data();
  if (p.o_residual) in.o_residual = tensor(o_residual_);
  // The gradients come back in FP32: the optimiser's side of the model is FP32, so that the arms differ in nothing but
  // the attention itself.
  octavo::backward_outputs out{.dq = tensor(dq_), .dk = tensor(dk_), .dv = tensor(dv_)};
  out.row_sum = row_sum_.data();
  out.l1 = l1_.data();
  require(context.config.backward(p, in, out, context.workspace));
  dqkv.leftCols(width) = dq_;
  dqkv.middleCols(width, width) = dk_;
  dqkv.rightCols(width) = dv_;
}

double attention::row_sum_residual() const {
  double sum = 0, l1 = 0;
  for (std::size_t i = 0; i < row_sum_.size(); ++i) {
    sum += std::abs(static_cast<double>(row_sum_[i]));
    l1 += static_cast<double>(l1_[i]);
  }
  // dS is P times differences of dO . v, which cancel where all v are alike. What FP32 leaves then is no quantity of
  // its own. The limit is well below the errors of a delta (half a percent of this product and less): they are to be
  // seen.
  constexpr double noise = 1e-5;
  return l1 > noise * product_of_norms() ? sum / l1 : std::numeric_limits<double>::quiet_NaN();
}

double attention::product_of_norms() const {
  const std::size_t d = o.size() / m_.size();
  double sum = 0;
  for (std::size_t begin = 0; begin < o.size(); begin += d) {
    double of_dout = 0, of_o = 0;
    for (std::size_t c = begin; c < begin + d; ++c) {
      const auto x = static_cast<double>(static_cast<float>(dout[c])),
                 y = static_cast<double>(static_cast<float>(o[c]));
      of_dout += x * x;
      of_o += y * y;
    }
    sum += std::sqrt(of_dout * of_o);
  }
  return sum;
}

}  // namespace train_lm
