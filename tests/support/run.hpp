// SPDX-License-Identifier: Apache-2.0
// run(): one engine on one test case, forward and backward, with everything checked that holds for any input: nothing
// outside the outputs is written, every output is, and the workspace is as large as workspace_size says.
#pragma once

#include "support/payload_memory.hpp"

#include <deque>
#include <string>

namespace octavo_tests {

/// What a run produced; empty where it was not asked for. Values of T are widened to floats.
struct results {
  octavo::status status;                // of the first call that failed
  std::vector<std::string> violations;  // outputs or inputs that were touched where they must not be
  floats o, o_residual, lse, m, l;
  floats dq, dk, dv, dsink, delta, row_sum, l1;
  payload_set payloads;  // with save_payloads

  bool ok() const { return status.ok() && violations.empty(); }
};

/// How the tensors of a run are stored.
struct storage {
  octavo::dtype gradients = octavo::dtype::f32;  // of dQ, dK, dV: f32 shows what rounding to T would hide
  bool o_in_f32 = false;                         // else O is of T, which is what a delta reads
  layout order = layout::tokens_first;
};

namespace run_detail {

/// The memory of one run. Everything that is put in is an input, to be found unchanged; everything else is an output.
class arena {
 public:
  explicit arena(const session& on) : on_(on) {}

  octavo::const_tensor put(const floats& x, octavo::dtype type, const tensor_shape& shape) {
    return inputs_.emplace_back(on_, type, shape, x).view();
  }
  template <class T>
  const T* put(const std::vector<T>& x) {
    if (x.empty()) return nullptr;
    if constexpr (std::is_same_v<T, float>)
      return input_arrays_.emplace_back(on_, x).data();
    else
      return input_offsets_.emplace_back(on_, x).data();
  }
  octavo::const_quantized put(const payload& x, octavo::dtype type, const tensor_shape& shape) {
    if (x.rowwise.empty()) return {};
    return input_payloads_.emplace_back(on_, shape, type, x).view();
  }
  void check_inputs(results& r) const {
    bool unchanged = true;
    const auto check = [&](const auto& list) {
      for (const auto& x : list) unchanged = unchanged && x.unchanged();
    };
    check(inputs_), check(input_arrays_), check(input_offsets_), check(input_payloads_);
    if (!unchanged) r.violations.emplace_back("an input was changed");
  }
  /// The values of an output; a violation if more than it was written.
  template <class Memory>
  auto take(results& r, const char* name, const Memory& output) const {
    if (!output.gaps_intact()) r.violations.push_back(std::string("memory beside ") + name + " was written");
    return output.values();
  }

 private:
  const session& on_;
  std::deque<tensor_memory> inputs_;
  std::deque<array_memory<float>> input_arrays_;
  std::deque<array_memory<std::int32_t>> input_offsets_;
  std::deque<payload_memory> input_payloads_;
};

/// Calls pass(workspace) with exactly the bytes that workspace_size asks for.
template <class Pass>
octavo::status with_workspace(const session& on, const octavo::engine& e, const octavo::problem& p, octavo::pass which,
                              results& r, const Pass& pass) {
  const std::size_t size = e.workspace_size(p, which);
  const array_memory<std::uint8_t> memory(on, static_cast<std::int64_t>(size));
  const octavo::status s = pass(octavo::workspace{memory.data(), size});
  on.synchronise();
  if (!memory.gaps_intact()) r.violations.emplace_back("memory beside the workspace was written");
  return s;
}

inline octavo::dtype gradient_payload_type(const octavo::engine& e) {
  return e.e5m2_gradients ? octavo::dtype::e5m2 : octavo::dtype::e4m3;
}

}  // namespace run_detail

/// Forward and, unless c.backward is off, backward of c by an engine of entry.
inline results run(const octavo::backend_entry& entry, const octavo::engine& e, const test_case& c, const storage& how = {}) {
  using run_detail::with_workspace;
  const octavo::problem& p = c.p;
  const session on(entry);
  run_detail::arena inputs(on);
  results r;

  const octavo::dtype o_type = how.o_in_f32 ? octavo::dtype::f32 : p.element;
  const tensor_shape q_shape = c.q_side(p.d_qk, how.order), o_shape = c.q_side(p.d_v, how.order);
  const tensor_shape k_shape = c.kv_side(p.d_qk, how.order), v_shape = c.kv_side(p.d_v, how.order);
  const std::int64_t rows = c.statistics();
  const auto new_payload = [&](const tensor_shape& shape, octavo::dtype type) {
    tensor_shape plain = shape;
    plain.order = layout::tokens_first;
    if (!p.save_payloads) return payload_memory(on, plain, type, {0, 0, 0}, false);
    return payload_memory(on, plain, type, payload_extents::of(e.recipe, plain, p.b, p.packed), e.recipe == "mx32");
  };

  octavo::forward_inputs in;
  if (p.payload_inputs) {
    in.q_payload = inputs.put(c.payloads.q, octavo::dtype::e4m3, c.q_side(p.d_qk));
    in.k_payload = inputs.put(c.payloads.k, octavo::dtype::e4m3, c.kv_side(p.d_qk));
    in.v_payload = inputs.put(c.payloads.v, octavo::dtype::e4m3, c.kv_side(p.d_v));
  } else {
    in.q = inputs.put(c.q, p.element, q_shape);
    in.k = inputs.put(c.k, p.element, k_shape);
    in.v = inputs.put(c.v, p.element, v_shape);
  }
  if (p.packed) {
    in.cu_seqlens_q = octavo::offsets_of(inputs.put(c.cu_q));
    in.cu_seqlens_kv = octavo::offsets_of(inputs.put(c.cu_kv));
  }
  in.sink = inputs.put(c.sink);
  in.key_shift = inputs.put(c.key_shift);

  const tensor_memory o(on, o_type, o_shape), residual(on, p.element, o_shape);
  const array_memory<float> lse(on, rows), m(on, rows), l(on, rows);
  const payload_memory q8 = new_payload(q_shape, octavo::dtype::e4m3), k8 = new_payload(k_shape, octavo::dtype::e4m3),
                       v8 = new_payload(v_shape, octavo::dtype::e4m3);
  octavo::forward_outputs out;
  out.o = o.view();
  out.lse = lse.data(), out.m = m.data(), out.l = l.data();
  if (p.o_residual) out.o_residual = residual.view();
  if (p.save_payloads) out.q_payload = q8.view(), out.k_payload = k8.view(), out.v_payload = v8.view();

  r.status = with_workspace(on, e, p, octavo::pass::forward, r,
                            [&](octavo::workspace w) { return e.forward(on.queue(), p, in, out, w); });
  r.o = inputs.take(r, "O", o);
  r.lse = inputs.take(r, "LSE", lse);
  r.m = inputs.take(r, "M", m);
  r.l = inputs.take(r, "l", l);
  if (p.o_residual) r.o_residual = inputs.take(r, "the residual of O", residual);
  if (p.save_payloads) {
    r.payloads.q = inputs.take(r, "q's payload", q8);
    r.payloads.k = inputs.take(r, "k's payload", k8);
    r.payloads.v = inputs.take(r, "v's payload", v8);
  }
  inputs.check_inputs(r);
  if (!r.status.ok() || !c.backward) return r;

  octavo::backward_inputs back;
  back.q = in.q, back.k = in.k, back.v = in.v;
  back.q_payload = in.q_payload, back.k_payload = in.k_payload, back.v_payload = in.v_payload;
  back.cu_seqlens_q = in.cu_seqlens_q, back.cu_seqlens_kv = in.cu_seqlens_kv;
  back.sink = in.sink, back.key_shift = in.key_shift;
  back.o = out.o, back.o_residual = out.o_residual, back.m = out.m, back.l = out.l;
  if (p.payload_inputs)
    back.dout_payload = inputs.put(c.payloads.dout, run_detail::gradient_payload_type(e), c.q_side(p.d_v));
  if (!back.dout_payload || e.delta == "stale") back.dout = inputs.put(c.dout, p.element, o_shape);  // stale: dO as given
  back.delta_shift = inputs.put(c.delta_shift);

  const array_memory<float> n_half(on, p.delta_halves ? rows : 0), sum_half(on, p.delta_halves ? rows : 0);
  if (p.delta_halves) {
    r.status = with_workspace(on, e, p, octavo::pass::delta, r, [&](octavo::workspace w) {
      return e.delta_sums(on.queue(), p, back, {n_half.data(), sum_half.data()}, w);
    });
    inputs.take(r, "the halves of delta", n_half), inputs.take(r, "the halves of delta", sum_half);
    if (!r.status.ok()) return r;
    back.delta_n = n_half.data(), back.delta_sum = sum_half.data();
  }

  const tensor_memory dq(on, how.gradients, q_shape), dk(on, how.gradients, k_shape), dv(on, how.gradients, v_shape);
  const array_memory<float> dsink(on, p.sink ? p.h_q : 0), delta(on, rows), row_sum(on, rows), l1(on, rows);
  const payload_memory dout8 = new_payload(o_shape, run_detail::gradient_payload_type(e));
  octavo::backward_outputs grad;
  grad.dq = dq.view(), grad.dk = dk.view(), grad.dv = dv.view();
  if (p.sink) grad.dsink = dsink.data();
  grad.delta = delta.data(), grad.row_sum = row_sum.data(), grad.l1 = l1.data();
  if (p.save_payloads) grad.dout_payload = dout8.view();

  r.status = with_workspace(on, e, p, octavo::pass::backward, r,
                            [&](octavo::workspace w) { return e.backward(on.queue(), p, back, grad, w); });
  r.dq = inputs.take(r, "dQ", dq);
  r.dk = inputs.take(r, "dK", dk);
  r.dv = inputs.take(r, "dV", dv);
  r.dsink = inputs.take(r, "dsink", dsink);
  r.delta = inputs.take(r, "delta", delta);
  r.row_sum = inputs.take(r, "the row sums", row_sum);
  r.l1 = inputs.take(r, "the L1 norms", l1);
  if (p.save_payloads) r.payloads.dout = inputs.take(r, "dO's payload", dout8);
  inputs.check_inputs(r);
  return r;
}

/// The backend with this name, or null.
inline const octavo::backend_entry* find_backend(std::span<const octavo::backend_entry> all, std::string_view name) {
  for (const octavo::backend_entry& entry : all)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace octavo_tests
