// SPDX-License-Identifier: Apache-2.0
// Q, K and V of a pass on their way from the caller's memory to images, for the schedules of lanes and of blocks alike.
// Input: one tensor's way, with the quantise kernel `work`, carve(memory, wanted_images) and operand().
#pragma once

#include <octavo/algorithm/prepare.hpp>
#include <octavo/backends/simt/block_launcher.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Which images and factors the loops of a pass want of a tensor.
struct wanted_images {
  bool rows = false, columns = false, plain = false, fold = false;
  int extra_rows = 0;  ///< of ones below the channels of a column image
};

/// Q, K and V of a pass, and what centring needs.
template <class B, class Recipe, class Input>
struct image_qkv {
  Input q, k, v;
  centring<B> centre;

  template <class Inputs, class Saved>
  void carve(detail::carver& memory, const problem& p, const Inputs& in, const Saved& save, const wanted_images& of_q,
             const wanted_images& of_k, const wanted_images& of_v) {
    const documents q_docs = query_documents(p, in.cu_seqlens_q), kv_docs = key_documents(p, in.cu_seqlens_kv);
    q.work.at = {q_docs, p.h_q, p.d_qk};
    k.work.at = {kv_docs, p.h_kv, p.d_qk};
    v.work.at = {kv_docs, p.h_kv, p.d_v};
    q.work.x = in.q, k.work.x = in.k, v.work.x = in.v;
    if (p.payload_inputs) q.work.given = in.q_payload, k.work.given = in.k_payload, v.work.given = in.v_payload;
    if (p.save_payloads) q.work.made = save.q_payload, k.work.made = save.k_payload, v.work.made = save.v_payload;
    centre.carve(memory, p, kv_docs, in.key_shift);
    k.work.shift = centre.key_shift;
    q.carve(memory, of_q);
    k.carve(memory, of_k);
    v.carve(memory, of_v);
  }
  template <class Inputs>
  pass_data<Recipe> data(const problem& p, const Inputs& in) const {
    return {p,       p.scale(),     q.work.at.docs, k.work.at.docs, q.work.given, k.work.given, v.work.given,
            in.sink, centre.q_shift};
  }
  template <class Inputs>
  void run(block_launcher<B>& on, const problem& p, const Inputs& in) const {
    const auto run_rows = [&](const auto& kernel) { on.run_rows(kernel); };
    centre.find_mean(run_rows, p, in.k, k.work.at.docs);
    on.run(q.work);
    on.run(k.work);
    on.run(v.work);
    centre.find_shifts(run_rows, data(p, in), p.payload_inputs ? const_tensor{} : in.q);
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
