// SPDX-License-Identifier: Apache-2.0
// Whether the tensors of a call fit its problem: present, of the right type, with strides that make sense.
#pragma once

#include <octavo/tensor/arguments.hpp>

OCTAVO_BEGIN_NAMESPACE

namespace detail {

/// Collects the first thing that is wrong with a call's arguments.
class argument_check {
 public:
  explicit argument_check(const problem& p) : p_(p) {}

  /// A tensor [b, s, h, d] or, packed, [total, h, d]. role::input: of T. role::result: of T or f32, as O is when it
  /// comes back to the backward. role::output: of T or f32, and no two elements may share memory.
  enum class role { input, result, output };
  void present(const char* name, const const_tensor& t, std::int64_t s, std::int64_t total, std::int64_t h,
               std::int64_t d, role as = role::input) {
    const std::int64_t rows = p_.packed ? total : p_.b * s;
    if (rows == 0) return;
    if (!t) return fail(text(name) << " is missing");
    if (t.type != p_.element && !(as != role::input && t.type == dtype::f32))
      return fail(text(name) << " is " << name_of(t.type) << ", but problem.element is " << name_of(p_.element));
    if (t.stride_b < 0 || t.stride_s < 0 || t.stride_h < 0) return fail(text(name) << " has a negative stride");
    if (as != role::output) return;
    const bool overlaps = (rows > 1 && s > 1 && t.stride_s < d) || (h > 1 && t.stride_h < d) ||
                          (!p_.packed && p_.b > 1 && s > 0 && t.stride_b < d);
    if (overlaps) fail(text(name) << " is written, so its strides must be at least d (" << d << ")");
  }
  void given(const char* name, const void* pointer, std::int64_t count) {
    if (count > 0 && pointer == nullptr) fail(text(name) << " is missing");
  }
  void refuse_if(bool wrong, const char* why) {
    if (wrong) fail(why);
  }
  status result() const { return result_; }

 private:
  void fail(text why) {
    if (result_.ok()) result_ = {status_code::invalid_argument, why};
  }
  const problem& p_;
  status result_;
};

inline void check_common(argument_check& c, const problem& p, const offsets& cu_q, const offsets& cu_kv,
                         const float* sink, const float* key_shift) {
  if (p.packed) {
    c.given("cu_seqlens_q", cu_q.data, 1);
    c.given("cu_seqlens_kv", cu_kv.data, 1);
  }
  c.refuse_if(!p.packed && (cu_q || cu_kv), "cu_seqlens are for packed documents: set problem.packed and the totals");
  if (p.sink) c.given("sink", sink, p.h_q);
  c.refuse_if(!p.sink && sink != nullptr, "sink is given, but problem.sink is not set");
  if (p.key_centring == key_centring::given) c.given("key_shift", key_shift, p.b);
  c.refuse_if(p.key_centring != key_centring::given && key_shift != nullptr,
              "key_shift is given, but problem.key_centring is not key_centring::given");
}

inline void check_qkv(argument_check& c, const problem& p, const const_tensor& q, const const_tensor& k,
                      const const_tensor& v, const const_quantized& q8, const const_quantized& k8,
                      const const_quantized& v8) {
  if (p.payload_inputs) {
    c.given("q_payload", q8.rowwise.data, p.stat_rows());
    c.given("k_payload", k8.rowwise.data, p.packed ? p.total_kv : p.b * p.s_kv);
    c.given("v_payload", v8.rowwise.data, p.packed ? p.total_kv : p.b * p.s_kv);
  } else {
    c.present("q", q, p.s_q, p.total_q, p.h_q, p.d_qk);
    c.present("k", k, p.s_kv, p.total_kv, p.h_kv, p.d_qk);
    c.present("v", v, p.s_kv, p.total_kv, p.h_kv, p.d_v);
  }
}

}  // namespace detail

inline status validate(const problem& p, const forward_inputs& in, const forward_outputs& out) {
  if (const status s = validate(p); !s) return s;
  using role = detail::argument_check::role;
  detail::argument_check c(p);
  detail::check_common(c, p, in.cu_seqlens_q, in.cu_seqlens_kv, in.sink, in.key_shift);
  detail::check_qkv(c, p, in.q, in.k, in.v, in.q_payload, in.k_payload, in.v_payload);
  c.present("o", out.o, p.s_q, p.total_q, p.h_q, p.d_v, role::output);
  if (p.o_residual) c.present("o_residual", out.o_residual, p.s_q, p.total_q, p.h_q, p.d_v, role::output);
  c.refuse_if((out.m == nullptr) != (out.l == nullptr), "m and l go together: give both to the forward, or neither");
  return c.result();
}

inline status validate(const problem& p, const partial_forward* parts, int count, const forward_outputs& out) {
  using role = detail::argument_check::role;
  detail::argument_check c(p);
  c.refuse_if(parts == nullptr || count < 1, "attention_combine needs at least one part");
  c.refuse_if(count > max_combined_parts, "attention_combine takes at most 32 parts: combine in steps");
  static_assert(max_combined_parts == 32);
  for (int r = 0; r < count && c.result().ok(); ++r) {
    c.present("a part's o", parts[r].o, p.s_q, p.total_q, p.h_q, p.d_v, role::result);
    c.given("a part's m", parts[r].m, p.stat_rows());
    c.given("a part's l", parts[r].l, p.stat_rows());
    if (out.lse != nullptr) c.given("a part's lse", parts[r].lse, p.stat_rows());
  }
  c.present("o", out.o, p.s_q, p.total_q, p.h_q, p.d_v, role::output);
  return c.result();
}

/// reads_o: whether the delta policy reads O.
inline status validate(const problem& p, const backward_inputs& in, const backward_outputs& out, bool reads_o) {
  if (const status s = validate(p); !s) return s;
  using role = detail::argument_check::role;
  detail::argument_check c(p);
  detail::check_common(c, p, in.cu_seqlens_q, in.cu_seqlens_kv, in.sink, in.key_shift);
  detail::check_qkv(c, p, in.q, in.k, in.v, in.q_payload, in.k_payload, in.v_payload);
  if (!(p.payload_inputs && in.dout_payload && !in.dout)) c.present("dout", in.dout, p.s_q, p.total_q, p.h_q, p.d_v);
  if (reads_o) c.present("o", in.o, p.s_q, p.total_q, p.h_q, p.d_v, role::result);
  if (reads_o && p.o_residual) c.present("o_residual", in.o_residual, p.s_q, p.total_q, p.h_q, p.d_v);
  c.given("m (from the forward)", in.m, p.stat_rows());
  c.given("l (from the forward)", in.l, p.stat_rows());
  c.refuse_if(
      p.part_of_keys() && !reads_o && !p.delta_halves,
      "these keys are a part of the sequence: add attention_delta's sums over all parts and set problem.delta_halves");
  if (p.delta_halves) {
    c.given("delta_n", in.delta_n, p.stat_rows());
    c.given("delta_sum", in.delta_sum, p.stat_rows());
    c.given("delta_shift", in.delta_shift, p.stat_rows());
  }
  c.present("dq", out.dq, p.s_q, p.total_q, p.h_q, p.d_qk, role::output);
  c.present("dk", out.dk, p.s_kv, p.total_kv, p.h_kv, p.d_qk, role::output);
  c.present("dv", out.dv, p.s_kv, p.total_kv, p.h_kv, p.d_v, role::output);
  if (p.sink) c.given("dsink", out.dsink, p.h_q);
  return c.result();
}

OCTAVO_END_NAMESPACE
