// SPDX-License-Identifier: Apache-2.0
// The passes of attention.hpp on schedules of blocks, host side: which problems they take, the workspace, the order of
// the kernels. What they do not take runs on the generic loops. An architecture brings its kernels as a struct:
//
//     computes<Recipe>                         whether it has schedules for a recipe
//     input<Recipe, D>                         one tensor's way to its images: work (a quantise kernel), carve, operand
//     forward, dq, dkv<Recipe, Delta, D>, delta_sums<Recipe, D>      the kernels
//     draws_tiles                              whether their blocks draw tiles from a list (tile_work.hpp)
#pragma once

#include <octavo/algorithm/passes.hpp>
#include <octavo/backends/cuda/common/row_terms.hpp>
#include <octavo/backends/cuda/common/tile_work.hpp>
#include <octavo/backends/simt/image_qkv.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// What a block of a row loop reads. Operand: a tensor's images and factors.
template <class Recipe, class Operand>
struct row_loop_data {
  backward_data<Recipe> backward;
  Operand q, k, v, dout;
};

/// Whether the schedules take a problem; the generic loops take the others.
inline bool takes(const problem& p) {
  const documents q = query_documents(p, {}), kv = key_documents(p, {});
  const std::int64_t longest =
      p.packed ? (p.total_q > p.total_kv ? p.total_q : p.total_kv) : (p.s_q > p.s_kv ? p.s_q : p.s_kv);
  // A negative scale turns maxima into minima, and one beyond these bounds leaves scores no digits.
  const bool ordinary_scale = p.scale() > 1e-10f && p.scale() < 1e6f;
  constexpr std::int64_t most_blocks = std::int64_t{1} << 30;
  return p.d_qk == p.d_v && (p.d_qk == 64 || p.d_qk == 128) && ordinary_scale && longest < longest_document &&
         p.h_q < most_blocks && q.slots(tile_tokens) < most_blocks / p.h_q &&
         kv.slots(tile_tokens) < most_blocks / p.h_kv;
}

/// Calls f with the head dimension as a constant.
template <class F>
auto with_head_dim(const problem& p, F f) {
  return p.d_qk == 64 ? f(std::integral_constant<int, 64>{}) : f(std::integral_constant<int, 128>{});
}

using simt::block_launcher, simt::image_qkv, simt::wanted_images;

template <class Config, class Schedules, int D>
struct block_forward {
  using B = typename Config::backend;
  using R = typename recipe::forward_of<typename Config::recipe>::type;
  using kernel = typename Schedules::template forward<R, typename Config::delta, D>;
  image_qkv<B, R, typename Schedules::template input<R, D>> qkv;
  made_list<B, R, true> rows;

  void carve(detail::carver& memory, const problem& p, const forward_inputs& in, const forward_outputs& out) {
    qkv.carve(memory, p, in, out, {.rows = true}, {.rows = true},
              {.columns = true, .fold = true, .extra_rows = kernel::extra_rows});
    if constexpr (Schedules::draws_tiles) rows.carve(memory, qkv.q.work.blocks(), 1);
  }
  status run(typename B::queue& queue, const problem& p, const forward_inputs& in, const forward_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    qkv.run(on, p, in);
    kernel main{qkv.data(p, in), out, qkv.q.operand(), qkv.k.operand(), qkv.v.operand()};
    if constexpr (Schedules::draws_tiles) {
      on.run_rows(rows.maker(main.data));
      main.list = rows.of(0);
    }
    on.run(main);
    return on.status();
  }
};

template <class Config, class Schedules, int D>
struct block_backward {
  using B = typename Config::backend;
  using R = typename Config::recipe;
  using Delta = typename Config::delta;
  using input = typename Schedules::template input<R, D>;
  using operand = decltype(input{}.operand());
  using sums_kernel = typename Schedules::template delta_sums<R, D>;
  enum row_kernel { sums_number, dq_number, row_kernels };  ///< which draw from the list of rows
  image_qkv<B, R, input> qkv;
  input dout;
  row_terms rows;
  delta_outputs sums;
  float* shift = nullptr;
  row_term_tile* terms = nullptr;
  sink_sums<B> sink;
  made_list<B, R, true> rows_list;
  made_list<B, R, false> keys_list;

  /// main: the whole backward; else only the sums of the matched delta.
  void carve(detail::carver& memory, const problem& p, const backward_inputs& in, const quantized& save_dout,
             bool main) {
    qkv.carve(memory, p, in, detail::saved_nothing{}, {.rows = true, .columns = main}, {.rows = true, .columns = main},
              {.rows = true, .fold = main});
    dout.work.at = {query_documents(p, in.cu_seqlens_q), p.h_q, p.d_v};
    dout.work.x = in.dout;
    if (p.payload_inputs && in.dout_payload) dout.work.given = in.dout_payload;
    if (p.save_payloads) dout.work.made = save_dout;
    dout.carve(memory, {.rows = true, .columns = main});
    if constexpr (Schedules::draws_tiles) {
      rows_list.carve(memory, dout.work.blocks(), row_kernels);
      if (main) keys_list.carve(memory, qkv.k.work.blocks(), 1);
    }
    if (!main) return;
    sink.carve(memory, p, dout.work.at.docs);
    const std::int64_t statistics = p.stat_rows() * p.h_q;
    for (float** x : {&rows.shift, &rows.delta, &rows.weight, &sums.n, &sums.sum, &shift})
      *x = memory.take<float>(statistics);
    terms = memory.take<row_term_tile>(dout.work.blocks());
  }
  void prepare(block_launcher<B>& on, const problem& p, const backward_inputs& in, bool main) const {
    if constexpr (Schedules::draws_tiles) {
      on.run_rows(rows_list.maker(qkv.data(p, in)));
      if (main) on.run_rows(keys_list.maker(qkv.data(p, in)));
    }
    qkv.run(on, p, in);
    on.run(dout.work);
  }
  /// Runs a kernel that draws from a list, where the schedules have them.
  template <class Kernel, class List>
  static void run_drawing(block_launcher<B>& on, Kernel kernel, const List& list, int number) {
    if constexpr (Schedules::draws_tiles) kernel.list = list.of(number);
    on.run(kernel);
  }
  row_loop_data<R, operand> data(const problem& p, const backward_inputs& in) const {
    return {{qkv.data(p, in), dout.work.given, in.m, rows},
            qkv.q.operand(),
            qkv.k.operand(),
            qkv.v.operand(),
            dout.operand()};
  }

  status run_delta(typename B::queue& queue, const problem& p, const backward_inputs& in,
                   const delta_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    prepare(on, p, in, false);
    run_drawing(on, sums_kernel{data(p, in), in.delta_shift, out, nullptr}, rows_list, sums_number);
    return on.status();
  }
  status run(typename B::queue& queue, const problem& p, const backward_inputs& in, const backward_outputs& out) const {
    block_launcher<B> on(queue, p, nullptr);
    prepare(on, p, in, true);
    const row_loop_data<R, operand> d = data(p, in);
    row_terms_kernel<R, Delta, D, operand> make_terms{
        d.backward, d.dout, in.dout, in.o,  p.o_residual ? in.o_residual : const_tensor{},
        shift,      sums,   in.l,    terms, out.delta};
    if (p.delta_halves) {
      make_terms.shift = in.delta_shift;
      make_terms.sums = {const_cast<float*>(in.delta_n), const_cast<float*>(in.delta_sum)};
    } else if constexpr (!Delta::reads_o) {
      run_drawing(on, sums_kernel{d, in.delta_shift, sums, shift}, rows_list, sums_number);
    }
    on.run(make_terms);
    run_drawing(on,
                typename Schedules::template dkv<R, Delta, D>{d.backward, d.q, d.k, d.v, d.dout, terms, out.dk, out.dv},
                keys_list, 0);
    run_drawing(on,
                typename Schedules::template dq<R, Delta, D>{
                    d, terms, out.dq, rows_keep_a_sum(p) ? qkv.centre.key_shift : nullptr, out.row_sum, out.l1},
                rows_list, dq_number);
    sink.find_gradient([&](const auto& kernel) { on.run_rows(kernel); }, d.backward, out.dsink);
    return on.status();
  }
};

/// The passes of a backend that runs Schedules: B::launch_blocks(queue, kernel) is what they ask of it.
template <class Schedules>
struct block_passes : generic_passes {
  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    if constexpr (Schedules::template computes<typename Config::recipe>)
      if (takes(p)) {
        return with_head_dim(p, [&](auto d) {
          detail::carver forward(nullptr), backward(nullptr), sums(nullptr);
          block_forward<Config, Schedules, d>{}.carve(forward, p, {}, {});
          block_backward<Config, Schedules, d>{}.carve(backward, p, {}, {}, true);
          block_backward<Config, Schedules, d>{}.carve(sums, p, {}, {}, false);
          const std::size_t larger = forward.used() > backward.used() ? forward.used() : backward.used();
          return which == pass::forward    ? forward.used()
                 : which == pass::backward ? backward.used()
                 : which == pass::delta    ? sums.used()
                 : which == pass::combine  ? 0
                                           : larger;
        });
      }
    return generic_passes::workspace_bytes<Config>(p, which);
  }
  template <class Config>
  static status forward(typename Config::backend::queue& queue, const problem& p, const forward_inputs& in,
                        const forward_outputs& out, const workspace& scratch) {
    if constexpr (Schedules::template computes<typename Config::recipe>)
      if (takes(p)) {
        return with_head_dim(p, [&](auto d) {
          detail::carver memory(scratch.data);
          block_forward<Config, Schedules, d> pass;
          pass.carve(memory, p, in, out);
          return pass.run(queue, p, in, out);
        });
      }
    return generic_passes::forward<Config>(queue, p, in, out, scratch);
  }
  template <class Config>
  static status backward(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                         const backward_outputs& out, const workspace& scratch) {
    if constexpr (Schedules::template computes<typename Config::recipe>)
      if (takes(p)) {
        return with_head_dim(p, [&](auto d) {
          detail::carver memory(scratch.data);
          block_backward<Config, Schedules, d> pass;
          pass.carve(memory, p, in, out.dout_payload, true);
          return pass.run(queue, p, in, out);
        });
      }
    return generic_passes::backward<Config>(queue, p, in, out, scratch);
  }
  template <class Config>
  static status delta_sums(typename Config::backend::queue& queue, const problem& p, const backward_inputs& in,
                           const delta_outputs& out, const workspace& scratch) {
    if constexpr (Schedules::template computes<typename Config::recipe>)
      if (takes(p)) {
        return with_head_dim(p, [&](auto d) {
          detail::carver memory(scratch.data);
          block_backward<Config, Schedules, d> pass;
          pass.carve(memory, p, in, {}, false);
          return pass.run_delta(queue, p, in, out);
        });
      }
    return generic_passes::delta_sums<Config>(queue, p, in, out, scratch);
  }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
