// SPDX-License-Identifier: Apache-2.0
// run(): one engine on one test case, forward and backward, with everything checked that holds for any input: nothing
// outside the outputs is written, every output is, and the workspace is as large as workspace_size says.
#pragma once

#include "support/arena.hpp"

namespace octavo_tests {

/// What a run produced; empty where it was not asked for. Values of T are widened to floats.
struct results {
  octavo::status status;                // of the first call that failed
  std::vector<std::string> violations;  // memory that was touched and must not be
  floats o, o_residual, lse, m, l;
  floats dq, dk, dv, dsink, delta, row_sum, l1;
  floats delta_n, delta_sum;  // with delta_halves
  payload_set payloads;       // with save_payloads

  bool ok() const { return status.ok() && violations.empty(); }
};

/// How the tensors of a run are stored.
struct storage {
  octavo::dtype gradients = octavo::dtype::f32;  // of dQ, dK, dV: f32 shows what rounding to T would hide
  bool o_in_f32 = false;                         // else O is of T, which is what a delta reads
  layout order = layout::tokens_first;
};

/// One run, pass by pass. Most tests want run() below.
class attention_run {
 public:
  attention_run(const octavo::backend_entry& entry, const octavo::engine& e, const test_case& c, const storage& how)
      : engine_(e), case_(c), p_(c.p), how_(how), on_(entry), memory_(on_) {
    if (p_.payload_inputs) {
      in_.q_payload = memory_.put(c.payloads.q, octavo::dtype::e4m3, c.q_side(p_.d_qk));
      in_.k_payload = memory_.put(c.payloads.k, octavo::dtype::e4m3, c.kv_side(p_.d_qk));
      in_.v_payload = memory_.put(c.payloads.v, octavo::dtype::e4m3, c.kv_side(p_.d_v));
    } else {
      in_.q = memory_.put(c.q, p_.element, q_shape());
      in_.k = memory_.put(c.k, p_.element, k_shape());
      in_.v = memory_.put(c.v, p_.element, v_shape());
    }
    if (p_.packed) in_.cu_seqlens_q = memory_.put(c.cu_q), in_.cu_seqlens_kv = memory_.put(c.cu_kv);
    in_.sink = memory_.put(c.sink);
    in_.key_shift = memory_.put(c.key_shift);
  }

  bool forward() {
    out_.o = memory_.take(result.o, "O", o_type(), o_shape());
    out_.lse = memory_.take(result.lse, "LSE", rows());
    out_.m = memory_.take(result.m, "M", rows());
    out_.l = memory_.take(result.l, "l", rows());
    if (p_.o_residual) out_.o_residual = memory_.take(result.o_residual, "the residual of O", p_.element, o_shape());
    if (p_.save_payloads) {
      out_.q_payload = take_payload(result.payloads.q, "q's payload", octavo::dtype::e4m3, case_.q_side(p_.d_qk));
      out_.k_payload = take_payload(result.payloads.k, "k's payload", octavo::dtype::e4m3, case_.kv_side(p_.d_qk));
      out_.v_payload = take_payload(result.payloads.v, "v's payload", octavo::dtype::e4m3, case_.kv_side(p_.d_v));
    }
    left_ = {out_.o, out_.o_residual, out_.m, out_.l};
    return call(octavo::pass::forward,
                [&](octavo::workspace w) { return engine_.forward(on_.queue(), p_, in_, out_, w); });
  }

  /// In place of a forward: what another run's left.
  void resume(const results& forward) {
    left_.o = memory_.put(forward.o, o_type(), o_shape());
    if (p_.o_residual) left_.o_residual = memory_.put(forward.o_residual, p_.element, o_shape());
    left_.m = memory_.put(forward.m), left_.l = memory_.put(forward.l);
  }

  bool backward() {
    octavo::backward_inputs in = backward_inputs();
    if (p_.delta_halves) {
      const octavo::delta_outputs halves{memory_.take(result.delta_n, "n", rows()),
                                         memory_.take(result.delta_sum, "the sum of delta", rows())};
      if (!call(octavo::pass::delta,
                [&](octavo::workspace w) { return engine_.delta_sums(on_.queue(), p_, in, halves, w); }))
        return false;
      in.delta_n = halves.n, in.delta_sum = halves.sum;
    }
    octavo::backward_outputs out;
    out.dq = memory_.take(result.dq, "dQ", how_.gradients, q_shape());
    out.dk = memory_.take(result.dk, "dK", how_.gradients, k_shape());
    out.dv = memory_.take(result.dv, "dV", how_.gradients, v_shape());
    if (p_.sink) out.dsink = memory_.take(result.dsink, "dsink", p_.h_q);
    out.delta = memory_.take(result.delta, "delta", rows());
    out.row_sum = memory_.take(result.row_sum, "the row sums", rows());
    out.l1 = memory_.take(result.l1, "the L1 norms", rows());
    if (p_.save_payloads)
      out.dout_payload = take_payload(result.payloads.dout, "dO's payload", gradient_payload(), case_.q_side(p_.d_v));
    return call(octavo::pass::backward,
                [&](octavo::workspace w) { return engine_.backward(on_.queue(), p_, in, out, w); });
  }

  results result;

 private:
  octavo::backward_inputs backward_inputs() {
    octavo::backward_inputs in;
    in.q = in_.q, in.k = in_.k, in.v = in_.v;
    in.q_payload = in_.q_payload, in.k_payload = in_.k_payload, in.v_payload = in_.v_payload;
    in.cu_seqlens_q = in_.cu_seqlens_q, in.cu_seqlens_kv = in_.cu_seqlens_kv;
    in.sink = in_.sink, in.key_shift = in_.key_shift;
    in.o = left_.o, in.o_residual = left_.o_residual, in.m = left_.m, in.l = left_.l;
    if (p_.payload_inputs) in.dout_payload = memory_.put(case_.payloads.dout, gradient_payload(), case_.q_side(p_.d_v));
    // The stale delta is of dO as given, even where products take its payload.
    if (!in.dout_payload || engine_.delta == "stale") in.dout = memory_.put(case_.dout, p_.element, o_shape());
    in.delta_shift = memory_.put(case_.delta_shift);
    return in;
  }

  /// Calls pass(workspace) with exactly the bytes that workspace_size asks for, and fetches what it wrote.
  template <class Pass>
  bool call(octavo::pass which, const Pass& pass) {
    const std::size_t size = engine_.workspace_size(p_, which);
    const array_memory<std::uint8_t> workspace(on_, static_cast<std::int64_t>(size));
    result.status = pass(octavo::workspace{workspace.data(), size});
    on_.synchronise();
    result.violations = memory_.collect();
    if (!workspace.gaps_intact()) result.violations.emplace_back("memory beside the workspace was written");
    return result.ok();
  }

  octavo::quantized take_payload(payload& to, const char* name, octavo::dtype type, const tensor_shape& shape) {
    return memory_.take(to, name, type, shape, payload_extents::of(engine_.recipe, shape, p_.b, p_.packed));
  }
  octavo::dtype gradient_payload() const { return engine_.e5m2_gradients ? octavo::dtype::e5m2 : octavo::dtype::e4m3; }
  octavo::dtype o_type() const { return how_.o_in_f32 ? octavo::dtype::f32 : p_.element; }
  std::int64_t rows() const { return case_.statistics(); }
  tensor_shape q_shape() const { return case_.q_side(p_.d_qk, how_.order); }
  tensor_shape k_shape() const { return case_.kv_side(p_.d_qk, how_.order); }
  tensor_shape v_shape() const { return case_.kv_side(p_.d_v, how_.order); }
  tensor_shape o_shape() const { return case_.q_side(p_.d_v, how_.order); }

  const octavo::engine& engine_;
  const test_case& case_;
  const octavo::problem& p_;
  storage how_;
  session on_;
  arena memory_;
  octavo::forward_inputs in_;
  octavo::forward_outputs out_;
  /// What the backward takes from the forward.
  struct {
    octavo::const_tensor o, o_residual;
    const float *m = nullptr, *l = nullptr;
  } left_;
};

/// Forward and, unless c.backward is off, backward of c by an engine of entry.
inline results run(const octavo::backend_entry& entry, const octavo::engine& e, const test_case& c,
                   const storage& how = {}) {
  attention_run r(entry, e, c, how);
  if (r.forward() && c.backward) r.backward();
  return std::move(r.result);
}

/// The backward of c alone, on the O, M and l of another run's forward.
inline results run_backward(const octavo::backend_entry& entry, const octavo::engine& e, const test_case& c,
                            const storage& how, const results& forward) {
  attention_run r(entry, e, c, how);
  r.resume(forward);
  r.backward();
  return std::move(r.result);
}

/// The backend with this name, or null.
inline const octavo::backend_entry* find_backend(std::span<const octavo::backend_entry> all, std::string_view name) {
  for (const octavo::backend_entry& entry : all)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace octavo_tests
