// SPDX-License-Identifier: Apache-2.0
// A pass's tensors on their way from the caller's memory to images: which of them the loops want, where they lie in the
// workspace, and the kernels that make them.
#pragma once

#include <octavo/algorithm/prepare.hpp>
#include <octavo/backends/simt/block_launcher.hpp>
#include <octavo/backends/simt/quantise.hpp>
#include <octavo/backends/simt/quantise_blocks.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Which images and factors the loops of a pass want of a tensor.
struct wanted_images {
  bool rows = false, columns = false, plain = false, fold = false;
};

template <class M, class Recipe, class E, int D>
struct image_input {
  static constexpr bool scaled = scales_in_atom<Recipe>;
  using kernel = std::conditional_t<scaled, quantise_blocks_kernel<M, Recipe, E, D>, quantise_kernel<M, Recipe, E, D>>;
  kernel work;

  void carve(detail::carver& memory, const wanted_images& wanted) {
    const std::int64_t tiles = work.blocks();
    const auto take = [&](int tile_bytes) { return memory.take<std::uint8_t>(tiles * tile_bytes); };
    if (wanted.rows) work.images.rows = take(image_bytes<M, scaled>(tile_tokens, D));
    if (wanted.columns) work.images.columns = take(image_bytes<M, scaled>(tile_tokens, D));
    if (wanted.plain) work.images.plain = take(plain_bytes<scaled>(D));
    if (wanted.columns) work.images.nonfinite_channels = memory.take<std::uint32_t>(tiles * tile_tokens * (D / 32));
    work.images.nonfinite = memory.take<std::uint32_t>(tiles * 4);
    if constexpr (!scaled) {
      work.scale = memory.take<float>(tiles * scales_per_tile<Recipe>);
      if (folds_token_scales<Recipe> && wanted.fold) work.fold = memory.take<float>(tiles * tile_tokens);
    }
  }
  image_operand operand() const {
    image_operand x{work.images, work.at.docs.slots(tile_tokens), nullptr, nullptr};
    if constexpr (!scaled) x.scale = work.scale, x.fold = work.fold;
    return x;
  }
};

/// Q, K and V of a pass, and what centring needs.
template <class B, class M, class Recipe, int D>
struct image_qkv {
  image_input<M, Recipe, typename Recipe::element, D> q, k, v;
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
