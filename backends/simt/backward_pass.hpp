// SPDX-License-Identifier: Apache-2.0
// The delta pass and the backward on the lane-level schedules, host side: the workspace and the order of the kernels.
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/images_of_pass.hpp>
#include <octavo/backends/simt/row_terms.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class Config, class M, int D>
struct backward_pass {
  using B = typename Config::backend;
  using R = typename Config::recipe;
  using Delta = typename Config::delta;
  image_qkv<B, R, image_input<M, R, typename R::element, D>> qkv;
  image_input<M, R, typename R::gradient_element, D> dout;
  octavo::row_terms rows;
  delta_outputs sums;
  float* shift = nullptr;
  row_term_tile* terms = nullptr;
  sink_sums<B> sink;

  /// main: the whole backward; else only the sums of the matched delta.
  void carve(detail::carver& memory, const problem& p, const backward_inputs& in, const quantized& save_dout,
             bool main) {
    qkv.carve(memory, p, in, detail::saved_nothing{}, {.rows = true, .columns = main}, {.rows = true, .columns = main},
              {.rows = true, .fold = main});
    dout.work.at = {query_documents(p, in.cu_seqlens_q), p.h_q, p.d_v};
    dout.work.x = in.dout;
    if (p.payload_inputs && in.dout_payload) dout.work.given = in.dout_payload;
    if (p.save_payloads) dout.work.made = save_dout;
    dout.carve(memory, {.rows = true, .columns = main, .plain = main && Delta::reads_o});
    if (!main) return;
    sink.carve(memory, p, dout.work.at.docs);
    const std::int64_t statistics = p.stat_rows() * p.h_q;
    for (float** x : {&rows.shift, &rows.delta, &rows.weight, &sums.n, &sums.sum, &shift})
      *x = memory.take<float>(statistics);
    terms = memory.take<row_term_tile>(dout.work.blocks());
  }
  void quantise(block_launcher<B>& on, const problem& p, const backward_inputs& in) const {
    qkv.run(on, p, in);
    on.run(dout.work);
  }
  row_loop_data<R> data(const problem& p, const backward_inputs& in) const {
    return {{qkv.data(p, in), dout.work.given, in.m, rows},
            qkv.q.operand(),
            qkv.k.operand(),
            qkv.v.operand(),
            dout.operand()};
  }

  status run_delta(typename B::queue& queue, const problem& p, const backward_inputs& in,
                   const delta_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    quantise(on, p, in);
    on.run(delta_sums_kernel<M, R, D>{data(p, in), in.delta_shift, out, nullptr});
    return on.status();
  }
  status run(typename B::queue& queue, const problem& p, const backward_inputs& in, const backward_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    quantise(on, p, in);
    const row_loop_data<R> d = data(p, in);
    row_terms_kernel<M, R, Delta, D> make_terms{
        d.backward, d.dout, in.dout, in.o,  p.o_residual ? in.o_residual : const_tensor{},
        shift,      sums,   in.l,    terms, out.delta};
    if (p.delta_halves) {
      make_terms.shift = in.delta_shift;
      make_terms.sums = {const_cast<float*>(in.delta_n), const_cast<float*>(in.delta_sum)};
    } else if constexpr (!Delta::reads_o) {
      on.run(delta_sums_kernel<M, R, D>{d, in.delta_shift, sums, shift});
    }
    on.run(make_terms);
    on.run(dkv_kernel<M, R, Delta, D>{d.backward, d.q, d.k, d.v, d.dout, terms, out.dk, out.dv});
    on.run(dq_kernel<M, R, Delta, D>{d, terms, out.dq, rows_keep_a_sum(p) ? qkv.centre.key_shift : nullptr, out.row_sum,
                                     out.l1});
    sink.find_gradient([&](const auto& kernel) { on.run_rows(kernel); }, d.backward, out.dsink);
    return on.status();
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
