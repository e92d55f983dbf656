// SPDX-License-Identifier: Apache-2.0
// Whether the tensors of a call fit its problem: present, of the right type, with strides that make sense.
#pragma once

#include <octavo/tensor/arguments.hpp>

OCTAVO_BEGIN_NAMESPACE

/// What a recipe's payloads are made of.
struct payload_format {
  dtype element = dtype::e4m3;   ///< of q, k, v
  dtype gradient = dtype::e4m3;  ///< of dO
  bool two_images = false;       ///< row-wise and column-wise, each with its scales
};

namespace detail {

/// Collects the first thing that is wrong with a call's arguments.
class argument_check {
 public:
  argument_check(const problem& p, const payload_format& format) : p_(p), format_(format) {}

  /// A tensor [b, s, h, d] or, packed, [total, h, d]. role::input: of T. role::result: of T or f32, as O is when it
  /// comes back to the backward. role::output: of T or f32, and no two elements may share memory.
  enum class role { input, result, output };
  void tensor(const char* name, const const_tensor& t, const side_of_problem& at, std::int64_t d, role as) {
    if (at.rows() == 0) return;
    if (!t) return fail(text(name) << " is missing");
    if (t.type != p_.element && !(as != role::input && t.type == dtype::f32))
      return fail(text(name) << " is " << name_of(t.type) << ", but problem.element is " << name_of(p_.element));
    strides(name, t, at, d, as == role::output);
  }

  /// A payload with its scales, as an input or (written) as memory to save it in.
  void payload(const char* name, const const_quantized& q, const side_of_problem& at, std::int64_t d, dtype element,
               bool written) {
    if (at.rows() == 0) return;
    if (!q) return fail(text(name) << " is missing");
    const auto image = [&](const const_tensor& t, const void* scales, const char* which) {
      if (!t || scales == nullptr) return fail(text(name) << " lacks its " << which << " payload or scales");
      if (t.type != element)
        return fail(text(name) << " is " << name_of(t.type) << ", but the recipe's element is " << name_of(element));
      strides(name, t, at, d, written);
    };
    image(q.rowwise, q.rowwise_scale, "row-wise");
    if (format_.two_images) image(q.columnwise, q.columnwise_scale, "column-wise");
  }

  void given(const char* name, const void* pointer, std::int64_t count) {
    if (count > 0 && pointer == nullptr) fail(text(name) << " is missing");
  }
  void refuse_if(bool wrong, const char* why) {
    if (wrong) fail(why);
  }
  const payload_format& format() const { return format_; }
  status result() const { return result_; }

 private:
  void strides(const char* name, const const_tensor& t, const side_of_problem& at, std::int64_t d, bool written) {
    if (t.stride_b < 0 || t.stride_s < 0 || t.stride_h < 0) return fail(text(name) << " has a negative stride");
    if (!written) return;
    // Dimensions from the fastest on: each must step over all that lies below it.
    struct dimension {
      std::int64_t extent, stride;
    } dims[3] = {{at.batches, t.stride_b}, {at.tokens, t.stride_s}, {at.heads, t.stride_h}};
    for (int pass = 0; pass < 2; ++pass)
      for (int i = 0; i < 2; ++i)
        if (dims[i].stride > dims[i + 1].stride) {
          const dimension larger = dims[i];
          dims[i] = dims[i + 1];
          dims[i + 1] = larger;
        }
    std::int64_t span = d;
    for (const dimension& x : dims) {
      if (x.extent < 2) continue;
      if (x.stride < span) return fail(text(name) << " is written, but its strides let elements share memory");
      span += (x.extent - 1) * x.stride;
    }
  }
  void fail(text why) {
    if (result_.ok()) result_ = {status_code::invalid_argument, why};
  }
  const problem& p_;
  const payload_format format_;
  status result_;
};
using role = argument_check::role;

/// What forward, backward and delta pass take alike.
template <class Inputs>
void check_inputs(argument_check& c, const problem& p, const Inputs& in) {
  if (p.packed) {
    c.given("cu_seqlens_q", in.cu_seqlens_q.data, 1);
    c.given("cu_seqlens_kv", in.cu_seqlens_kv.data, 1);
  }
  c.refuse_if(!p.packed && (in.cu_seqlens_q || in.cu_seqlens_kv),
              "cu_seqlens are for packed documents: set problem.packed and the totals");
  if (p.sink) c.given("sink", in.sink, p.h_q);
  c.refuse_if(!p.sink && in.sink != nullptr, "sink is given, but problem.sink is not set");
  if (p.key_centring == key_centring::given) c.given("key_shift", in.key_shift, p.b);
  c.refuse_if(p.key_centring != key_centring::given && in.key_shift != nullptr,
              "key_shift is given, but problem.key_centring is not key_centring::given");
  const side_of_problem q = query_side(p), kv = key_side(p);
  if (p.payload_inputs) {
    c.payload("q_payload", in.q_payload, q, p.d_qk, c.format().element, false);
    c.payload("k_payload", in.k_payload, kv, p.d_qk, c.format().element, false);
    c.payload("v_payload", in.v_payload, kv, p.d_v, c.format().element, false);
  } else {
    c.refuse_if(in.q_payload || in.k_payload || in.v_payload,
                "payloads are given, but problem.payload_inputs is not set");
    c.tensor("q", in.q, q, p.d_qk, role::input);
    c.tensor("k", in.k, kv, p.d_qk, role::input);
    c.tensor("v", in.v, kv, p.d_v, role::input);
  }
}

/// dO comes as a tensor, or as a payload where payloads are inputs.
inline void check_dout(argument_check& c, const problem& p, const backward_inputs& in) {
  if (p.payload_inputs && in.dout_payload)
    c.payload("dout_payload", in.dout_payload, query_side(p), p.d_v, c.format().gradient, false);
  else
    c.refuse_if(static_cast<bool>(in.dout_payload), "dout_payload is given, but problem.payload_inputs is not set");
  if (!(p.payload_inputs && in.dout_payload && !in.dout)) c.tensor("dout", in.dout, query_side(p), p.d_v, role::input);
}

}  // namespace detail

inline status validate(const problem& p, const payload_format& format, const forward_inputs& in,
                       const forward_outputs& out) {
  if (const status s = validate(p); !s) return s;
  using detail::role;
  detail::argument_check c(p, format);
  detail::check_inputs(c, p, in);
  const side_of_problem q = query_side(p), kv = key_side(p);
  c.tensor("o", out.o, q, p.d_v, role::output);
  if (p.o_residual) c.tensor("o_residual", out.o_residual, q, p.d_v, role::output);
  c.refuse_if(!p.o_residual && out.o_residual, "o_residual is given, but problem.o_residual is not set");
  c.refuse_if((out.m == nullptr) != (out.l == nullptr), "m and l go together: give both to the forward, or neither");
  if (p.save_payloads) {
    c.payload("the memory for q_payload", out.q_payload, q, p.d_qk, format.element, true);
    c.payload("the memory for k_payload", out.k_payload, kv, p.d_qk, format.element, true);
    c.payload("the memory for v_payload", out.v_payload, kv, p.d_v, format.element, true);
  }
  c.refuse_if(!p.save_payloads && (out.q_payload || out.k_payload || out.v_payload),
              "memory for payloads is given, but problem.save_payloads is not set");
  return c.result();
}

inline status validate(const problem& p, const partial_forward* parts, int count, const forward_outputs& out) {
  if (const status s = validate(p); !s) return s;
  using detail::role;
  detail::argument_check c(p, {});
  c.refuse_if(parts == nullptr || count < 1, "attention_combine needs at least one part");
  c.refuse_if(count > max_combined_parts, "attention_combine takes at most 32 parts: combine in steps");
  static_assert(max_combined_parts == 32);
  for (int r = 0; r < count && c.result().ok(); ++r) {
    c.tensor("a part's o", parts[r].o, query_side(p), p.d_v, role::result);
    c.given("a part's m", parts[r].m, p.stat_rows());
    c.given("a part's l", parts[r].l, p.stat_rows());
    if (out.lse != nullptr) c.given("a part's lse", parts[r].lse, p.stat_rows());
  }
  c.tensor("o", out.o, query_side(p), p.d_v, role::output);
  if (p.o_residual) c.tensor("o_residual", out.o_residual, query_side(p), p.d_v, role::output);
  return c.result();
}

inline status validate(const problem& p, const payload_format& format, const backward_inputs& in,
                       const delta_outputs& out) {
  if (const status s = validate(p); !s) return s;
  detail::argument_check c(p, format);
  detail::check_inputs(c, p, in);
  detail::check_dout(c, p, in);
  c.given("m (from the forward)", in.m, p.stat_rows());
  c.given("delta_shift", in.delta_shift, p.stat_rows());
  c.given("n", out.n, p.stat_rows());
  c.given("sum", out.sum, p.stat_rows());
  return c.result();
}

/// Delta: the policy, which says whether O and its residual are read.
template <class Delta>
status validate(const problem& p, const payload_format& format, const backward_inputs& in,
                const backward_outputs& out) {
  if (const status s = validate(p); !s) return s;
  using detail::role;
  detail::argument_check c(p, format);
  detail::check_inputs(c, p, in);
  detail::check_dout(c, p, in);
  const side_of_problem q = query_side(p), kv = key_side(p);
  if (Delta::reads_o) c.tensor("o", in.o, q, p.d_v, role::result);
  if (Delta::reuses_forward_p && p.o_residual) c.tensor("o_residual", in.o_residual, q, p.d_v, role::result);
  c.given("m (from the forward)", in.m, p.stat_rows());
  c.given("l (from the forward)", in.l, p.stat_rows());
  c.refuse_if(
      p.part_of_keys() && !Delta::reads_o && !p.delta_halves,
      "these keys are a part of the sequence: add attention_delta's sums over all parts and set problem.delta_halves");
  if (p.delta_halves) {
    c.given("delta_n", in.delta_n, p.stat_rows());
    c.given("delta_sum", in.delta_sum, p.stat_rows());
    c.given("delta_shift", in.delta_shift, p.stat_rows());
  }
  c.tensor("dq", out.dq, q, p.d_qk, role::output);
  c.tensor("dk", out.dk, kv, p.d_qk, role::output);
  c.tensor("dv", out.dv, kv, p.d_v, role::output);
  if (p.sink) c.given("dsink", out.dsink, p.h_q);
  if (p.save_payloads) c.payload("the memory for dout_payload", out.dout_payload, q, p.d_v, format.gradient, true);
  c.refuse_if(!p.save_payloads && out.dout_payload,
              "memory for a payload is given, but problem.save_payloads is not set");
  return c.result();
}

OCTAVO_END_NAMESPACE
