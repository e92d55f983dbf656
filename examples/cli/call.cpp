// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <algorithm>
#include <chrono>

#include "elements.hpp"

namespace cli {
namespace {

/// Runs `work` and the queue until it is empty; milliseconds.
template <class Work>
double timed(const device& on, Work work) {
  const auto begin = std::chrono::steady_clock::now();
  require(work());
  on.synchronise();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

std::int64_t rows(const octavo::problem& p, bool queries) {
  if (p.packed) return queries ? p.total_q : p.total_kv;
  return p.b * (queries ? p.s_q : p.s_kv);
}

std::int64_t heads(const octavo::problem& p, bool queries) { return queries ? p.h_q : p.h_kv; }

std::size_t count(std::int64_t n) { return static_cast<std::size_t>(n); }

}  // namespace

attention_call::attention_call(const device& on, const octavo::engine& engine, const inputs& in,
                               const octavo::problem& p)
    : on_(on), engine_(engine), p_(p), result_type_(engine.recipe == "exact" ? octavo::dtype::f32 : p.element) {
  const auto upload = [&](const npy::array& a) { return on_.upload(a.data.data(), a.data.size()); };
  q_ = upload(in.q), k_ = upload(in.k), v_ = upload(in.v);
  if (in.cu_seqlens_q) cu_q_ = upload(*in.cu_seqlens_q), cu_kv_ = upload(*in.cu_seqlens_kv);
  if (in.sink) sink_ = upload(*in.sink);
  if (p_.key_centring == octavo::key_centring::given) key_shift_ = upload(*in.key_shift);
  prepare_forward(in);
  if (in.dout) prepare_backward(in);
  std::size_t scratch = engine_.workspace_size(p_, octavo::pass::forward);
  if (has_backward_) scratch = std::max(scratch, engine_.workspace_size(p_, octavo::pass::backward));
  workspace_ = on_.allocate(scratch);
}

void attention_call::prepare_forward(const inputs& in) {
  const std::size_t statistic = count(p_.stat_rows() * p_.h_q) * sizeof(float);
  o_ = allocate_tensor(result_type_, true, p_.d_v);
  lse_ = on_.allocate(statistic), m_ = on_.allocate(statistic), l_ = on_.allocate(statistic);

  octavo::forward_inputs& from = forward_in_;
  from.q = tensor_of(q_, p_.element, true, p_.d_qk);
  from.k = tensor_of(k_, p_.element, false, p_.d_qk);
  from.v = tensor_of(v_, p_.element, false, p_.d_v);
  if (p_.packed) {
    from.cu_seqlens_q = {cu_q_.data(), in.cu_seqlens_q->type == npy::dtype::int64};
    from.cu_seqlens_kv = {cu_kv_.data(), in.cu_seqlens_kv->type == npy::dtype::int64};
  }
  from.sink = sink_.floats();
  from.key_shift = key_shift_.floats();

  octavo::forward_outputs& to = forward_out_;
  to.o = result_of(o_, result_type_, true, p_.d_v);
  to.lse = lse_.floats(), to.m = m_.floats(), to.l = l_.floats();
  if (p_.o_residual) {
    o_residual_ = allocate_tensor(p_.element, true, p_.d_v);
    to.o_residual = result_of(o_residual_, p_.element, true, p_.d_v);
  }
  if (p_.save_payloads) {
    payloads_.reserve(4);  // of q, k, v and, in the backward, do
    to.q_payload = payloads_.emplace_back(on_, engine_, p_, "q", true, p_.d_qk).view();
    to.k_payload = payloads_.emplace_back(on_, engine_, p_, "k", false, p_.d_qk).view();
    to.v_payload = payloads_.emplace_back(on_, engine_, p_, "v", false, p_.d_v).view();
  }
}

void attention_call::prepare_backward(const inputs& in) {
  has_backward_ = true;
  const std::size_t statistic = count(p_.stat_rows() * p_.h_q) * sizeof(float);
  dout_ = on_.upload(in.dout->data.data(), in.dout->data.size());
  dq_ = allocate_tensor(result_type_, true, p_.d_qk);
  dk_ = allocate_tensor(result_type_, false, p_.d_qk);
  dv_ = allocate_tensor(result_type_, false, p_.d_v);
  delta_ = on_.allocate(statistic), row_sum_ = on_.allocate(statistic), l1_ = on_.allocate(statistic);
  if (p_.sink) dsink_ = on_.allocate(count(p_.h_q) * sizeof(float));

  octavo::backward_inputs& from = backward_in_;
  from.q = forward_in_.q, from.k = forward_in_.k, from.v = forward_in_.v;
  from.dout = tensor_of(dout_, p_.element, true, p_.d_v);
  from.o = forward_out_.o;
  from.o_residual = forward_out_.o_residual;
  from.m = m_.floats(), from.l = l_.floats();
  from.cu_seqlens_q = forward_in_.cu_seqlens_q, from.cu_seqlens_kv = forward_in_.cu_seqlens_kv;
  from.sink = forward_in_.sink, from.key_shift = forward_in_.key_shift;

  octavo::backward_outputs& to = backward_out_;
  to.dq = result_of(dq_, result_type_, true, p_.d_qk);
  to.dk = result_of(dk_, result_type_, false, p_.d_qk);
  to.dv = result_of(dv_, result_type_, false, p_.d_v);
  to.dsink = dsink_.floats();
  to.delta = delta_.floats(), to.row_sum = row_sum_.floats(), to.l1 = l1_.floats();
  if (p_.save_payloads) to.dout_payload = payloads_.emplace_back(on_, engine_, p_, "do", true, p_.d_v).view();
}

double attention_call::forward() {
  return timed(on_, [&] {
    return engine_.forward(on_.queue(), p_, forward_in_, forward_out_, {workspace_.data(), workspace_.bytes()});
  });
}

double attention_call::backward() {
  return timed(on_, [&] {
    return engine_.backward(on_.queue(), p_, backward_in_, backward_out_, {workspace_.data(), workspace_.bytes()});
  });
}

results attention_call::collect() const {
  results r;
  r.o = fetch(o_, result_type_, true, p_.d_v);
  r.lse = fetch_statistic(lse_);
  if (p_.o_residual) r.o_residual = fetch(o_residual_, p_.element, true, p_.d_v);
  if (has_backward_) {
    r.dq = fetch(dq_, result_type_, true, p_.d_qk);
    r.dk = fetch(dk_, result_type_, false, p_.d_qk);
    r.dv = fetch(dv_, result_type_, false, p_.d_v);
    r.delta = fetch_statistic(delta_);
    r.row_sum = fetch_statistic(row_sum_);
    r.l1 = fetch_statistic(l1_);
    if (p_.sink) {
      r.dsink = float_array{{p_.h_q}, std::vector<float>(count(p_.h_q))};
      on_.download(r.dsink->values.data(), dsink_);
    }
  }
  for (const device_payload& payload : payloads_) r.payloads.push_back(payload.fetch());
  return r;
}

octavo::tensor attention_call::result_of(const buffer& data, octavo::dtype type, bool queries, std::int64_t d) const {
  const std::int64_t s = p_.packed ? rows(p_, queries) : (queries ? p_.s_q : p_.s_kv);
  return octavo::contiguous(data.data(), type, s, heads(p_, queries), d);
}

octavo::const_tensor attention_call::tensor_of(const buffer& data, octavo::dtype type, bool queries,
                                               std::int64_t d) const {
  return result_of(data, type, queries, d);
}

buffer attention_call::allocate_tensor(octavo::dtype type, bool queries, std::int64_t d) const {
  return on_.allocate(count(rows(p_, queries) * heads(p_, queries) * d * bytes_of(type)));
}

float_array attention_call::fetch(const buffer& from, octavo::dtype type, bool queries, std::int64_t d) const {
  const std::int64_t s = queries ? p_.s_q : p_.s_kv;
  float_array out;
  out.shape =
      p_.packed ? npy::extents{rows(p_, queries), heads(p_, queries), d} : npy::extents{p_.b, s, heads(p_, queries), d};
  out.values.resize(count(rows(p_, queries) * heads(p_, queries) * d));
  std::vector<std::byte> stored(from.bytes());
  on_.download(stored.data(), from);
  for (std::size_t i = 0; i < out.values.size(); ++i)
    out.values[i] = element_at(stored.data(), type, static_cast<std::int64_t>(i));
  return out;
}

float_array attention_call::fetch_statistic(const buffer& from) const {
  float_array out;
  out.shape = p_.packed ? npy::extents{p_.h_q, p_.total_q} : npy::extents{p_.b, p_.h_q, p_.s_q};
  out.values.resize(count(p_.stat_rows() * p_.h_q));
  on_.download(out.values.data(), from);
  return out;
}

}  // namespace cli
