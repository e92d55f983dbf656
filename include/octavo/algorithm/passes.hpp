// SPDX-License-Identifier: Apache-2.0
// The generic passes, host side: carve the caller's workspace, quantise, run the loops in order on the caller's queue.
// A backend gets them by inheriting generic_passes; one with schedules of its own replaces what it wants.
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/algorithm/combine.hpp>
#include <octavo/algorithm/forward.hpp>
#include <octavo/algorithm/prepare.hpp>
#include <octavo/algorithm/sink_gradient.hpp>
#include <octavo/attention.hpp>

OCTAVO_BEGIN_NAMESPACE

namespace detail {

/// Payloads that only a forward can be asked to keep.
struct saved_nothing {
  quantized q_payload{}, k_payload{}, v_payload{};
};

template <class Config>
struct generic_forward {
  using B = typename Config::backend;
  using R = typename recipe::forward_of<typename Config::recipe>::type;
  using D = delta::of_forward<typename Config::delta>;
  quantised_qkv<B, R> qkv;
  void* scratch = nullptr;

  void carve(carver& memory, const problem& p, const forward_inputs& in, const forward_outputs& out) {
    qkv.carve(memory, p, in, out);
    scratch = memory.take<std::uint8_t>(static_cast<std::int64_t>(B::scratch_bytes(p)));
  }
  status run(typename B::queue& queue, const problem& p, const forward_inputs& in, const forward_outputs& out) const {
    launcher<B> on(queue, p, scratch);
    qkv.run(on, p, in);
    on.run(forward_kernel<B, R, D>{qkv.data(p, in), out});
    return on.status();
  }
};

template <class Config>
struct generic_backward {
  using B = typename Config::backend;
  using R = typename Config::recipe;
  using D = typename Config::delta;
  quantised_qkv<B, R> qkv;
  quantised_input<B, R, typename R::gradient_element> dout;
  row_terms rows;
  delta_outputs sums;
  float *shift = nullptr, *dq = nullptr, *row_sum = nullptr;
  std::int32_t* turns = nullptr;
  sink_sums<B> sink;
  void* scratch = nullptr;

  /// main: the whole backward; else only the sums of the matched delta.
  void carve(carver& memory, const problem& p, const backward_inputs& in, const quantized& save_dout, bool main) {
    qkv.carve(memory, p, in, saved_nothing{});
    dout.at = {query_documents(p, in.cu_seqlens_q), p.h_q, p.d_v};
    dout.x = in.dout;
    if (p.payload_inputs && in.dout_payload) dout.given = in.dout_payload;
    dout.carve(memory, p, false, p.save_payloads ? save_dout : quantized{});
    scratch = memory.take<std::uint8_t>(static_cast<std::int64_t>(B::scratch_bytes(p)));
    if (!main) return;
    sink.carve(memory, p, dout.at.docs);
    const std::int64_t statistics = p.stat_rows() * p.h_q;
    for (float** x : {&rows.shift, &rows.delta, &rows.weight, &sums.n, &sums.sum, &shift, &row_sum})
      *x = memory.take<float>(statistics);
    dq = memory.take<float>(statistics * p.d_qk);
    turns = memory.take<std::int32_t>(dout.at.docs.slots(B::tile_q) * p.h_q);
  }
  void quantise(launcher<B>& on, const problem& p, const backward_inputs& in) const {
    qkv.run(on, p, in);
    dout.run(on);
  }
  backward_data<R> data(const problem& p, const backward_inputs& in) const {
    return {qkv.data(p, in), dout.payload(), in.m, rows};
  }

  status run_delta(typename B::queue& queue, const problem& p, const backward_inputs& in,
                   const delta_outputs& out) const {
    launcher<B> on(queue, p, scratch);
    quantise(on, p, in);
    on.run(delta_sums_kernel<B, R>{data(p, in), in.delta_shift, out, nullptr});
    return on.status();
  }
  status run(typename B::queue& queue, const problem& p, const backward_inputs& in, const backward_outputs& out) const {
    launcher<B> on(queue, p, scratch);
    quantise(on, p, in);
    const backward_data<R> d = data(p, in);
    row_terms_kernel<B, R, D> terms{d,    shift, sums,  in.dout, in.o,  p.o_residual ? in.o_residual : const_tensor{},
                                    in.l, dq,    turns, row_sum, out.l1};
    if (p.delta_halves) {
      terms.shift = in.delta_shift;
      terms.sums = {const_cast<float*>(in.delta_n), const_cast<float*>(in.delta_sum)};
    } else if constexpr (!D::reads_o) {
      on.run(delta_sums_kernel<B, R>{d, in.delta_shift, sums, shift});
    }
    on.run(terms);
    const bool row_sums = out.row_sum != nullptr || (qkv.centre.key_shift != nullptr && rows_keep_a_sum(p));
    on.run(backward_kernel<B, R, D>{d, out, dq, turns, row_sums ? row_sum : nullptr, out.l1});
    on.run(finish_rows_kernel<B, R>{d, out, dq, row_sum, qkv.centre.key_shift});
    sink.find_gradient([&](const auto& kernel) { on.run(kernel); }, d, out.dsink);
    return on.status();
  }
};

}  // namespace detail

/// The passes of attention.hpp on the generic loops. Inherit it in a backend.
struct generic_passes {
  template <class Config>
  static constexpr feature_set features() {
    return every_feature<Config>();
  }
  template <class Config>
  static text refusal(const problem&) {
    return {};
  }
  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    const auto forward = [&] {
      detail::carver count(nullptr);
      detail::generic_forward<Config>{}.carve(count, p, {}, {});
      return count.used();
    };
    const auto backward = [&](bool main) {
      detail::carver count(nullptr);
      detail::generic_backward<Config>{}.carve(count, p, {}, {}, main);
      return count.used();
    };
    switch (which) {
      case pass::forward:
        return forward();
      case pass::backward:
        return backward(true);
      case pass::delta:
        return backward(false);
      case pass::combine:
        return 0;
      case pass::all:
        break;
    }
    const std::size_t f = forward(), b = backward(true);
    return f > b ? f : b;
  }
  template <class Config>
  static status forward(typename Config::backend::queue& queue, const problem& p, const forward_inputs& in,
                        const forward_outputs& out, const workspace& scratch) {
    detail::carver memory(scratch.data);
    detail::generic_forward<Config> pass;
    pass.carve(memory, p, in, out);
    return pass.run(queue, p, in, out);
  }
  template <class Config>
  static status backward(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                         const backward_outputs& out, const workspace& scratch) {
    detail::carver memory(scratch.data);
    detail::generic_backward<Config> pass;
    pass.carve(memory, p, in, out.dout_payload, true);
    return pass.run(queue, p, in, out);
  }
  template <class Config>
  static status delta_sums(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                           const delta_outputs& out, const workspace& scratch) {
    detail::carver memory(scratch.data);
    detail::generic_backward<Config> pass;
    pass.carve(memory, p, in, {}, false);
    return pass.run_delta(queue, p, in, out);
  }
  template <class Config>
  static status combine_parts(typename Config::backend::queue& queue, const problem& p, const partial_forward* parts,
                              int count, const forward_outputs& out, const workspace&) {
    using B = typename Config::backend;
    detail::launcher<B> on(queue, p, nullptr);
    // Rows are independent, so packed documents are one long one here and need no offsets.
    combine_kernel<B> kernel;
    kernel.problem = p;
    kernel.q_docs = p.packed ? documents{1, p.total_q} : query_documents(p, {});
    kernel.count = count;
    kernel.out = out;
    for (int r = 0; r < count; ++r) kernel.parts[r] = parts[r];
    on.run(kernel);
    return on.status();
  }
};

OCTAVO_END_NAMESPACE
