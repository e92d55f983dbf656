// SPDX-License-Identifier: Apache-2.0
// What every pass begins with, host side: carve the caller's workspace, and bring Q, K, V (and dO) into the form that
// the loops read: payloads and scales, with the keys centred where that is asked.
#pragma once

#include <octavo/algorithm/centring.hpp>

OCTAVO_BEGIN_NAMESPACE

namespace detail {

/// Runs kernels one after another until one fails.
template <class B>
class launcher {
 public:
  launcher(typename B::queue& queue, const problem& p, void* scratch) : queue_(queue), problem_(p), scratch_(scratch) {}

  template <class Kernel>
  launcher& run(const Kernel& kernel) {
    if (!status_.ok()) return *this;
    if constexpr (requires { B::trace(Kernel::name); }) B::trace(Kernel::name);
    if (const std::int64_t items = kernel.items(); items > 0)
      status_ = B::launch(queue_, problem_, scratch_, items, kernel);
    return *this;
  }
  octavo::status status() const { return status_; }

 private:
  typename B::queue& queue_;
  const problem& problem_;
  void* scratch_;
  octavo::status status_;
};

template <class B, class Recipe, class E>
struct quantise_kernel {
  quantiser<Recipe, E> work;
  OCTAVO_HD std::int64_t items() const { return work.at.docs.slots(tile_block) * work.at.heads; }
  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    work.tile(work.at.docs.tile_at(item / work.at.heads, tile_block), item % work.at.heads);
  }
};

template <class B, class Recipe, class E>
struct tensor_scale_kernel {
  quantiser<Recipe, E> work;
  OCTAVO_HD std::int64_t items() const { return work.at.docs.count * work.at.heads; }
  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    work.tensor_scale(item / work.at.heads, item % work.at.heads);
  }
};

/// One tensor's way from the caller's memory to what the loops read.
template <class B, class Recipe, class E>
struct quantised_input {
  scale_layout<Recipe> at;
  const_tensor x;
  const float* shift = nullptr;
  const_quantized given;  ///< the caller's payload, where it brings one
  quantized made;         ///< where the payload is made, in the workspace or in the caller's memory
  bool in_place = false;  ///< a BF16 tensor is its own BF16 payload

  static constexpr dtype payload_type = dtype_of<E>::value;

  /// save: the caller's memory for a payload to keep, or an absent one. (The size is asked for without it, and so may
  /// be larger than what is used.)
  void carve(carver& memory, const problem& p, bool shifted, const quantized& save) {
    in_place = !recipe::is_fp8<Recipe> && p.element == dtype::bf16 && !shifted;
    if (given || in_place) return;
    if (save) {
      made = save;
      return;
    }
    const std::int64_t elements = at.docs.rows() * at.heads * at.d;
    const auto image = [&] {
      return contiguous(static_cast<void*>(memory.take<E>(elements)), payload_type,
                        at.docs.packed ? at.docs.total : at.docs.length, at.heads, at.d);
    };
    made.rowwise = image();
    made.rowwise_scale = memory.take<std::uint8_t>(at.rowwise_count() * static_cast<std::int64_t>(at.scale_bytes));
    if constexpr (Recipe::scale_per == recipe::granularity::block32) {
      made.columnwise = image();
      made.columnwise_scale = memory.take<std::uint8_t>(at.columnwise_count());
    }
  }
  const_quantized payload() const {
    if (given) return given;
    if (!in_place) return made;
    quantized q;
    q.rowwise = {const_cast<void*>(x.data), x.type, x.stride_b, x.stride_s, x.stride_h};
    return q;
  }
  void run(launcher<B>& on) const {
    if (given || in_place) return;
    const quantiser<Recipe, E> work{x, shift, made, at};
    if constexpr (Recipe::scale_per == recipe::granularity::tensor) on.run(tensor_scale_kernel<B, Recipe, E>{work});
    on.run(quantise_kernel<B, Recipe, E>{work});
  }
};

/// What forward, delta pass and backward share: quantised Q, K, V, and what centring needs.
template <class B, class Recipe>
struct quantised_qkv {
  using E = typename Recipe::element;
  quantised_input<B, Recipe, E> q, k, v;
  centring<B> centre;

  template <class Inputs, class Saved>
  void carve(carver& memory, const problem& p, const Inputs& in, const Saved& save) {
    const documents q_docs = query_documents(p, in.cu_seqlens_q), kv_docs = key_documents(p, in.cu_seqlens_kv);
    q.at = {q_docs, p.h_q, p.d_qk};
    k.at = {kv_docs, p.h_kv, p.d_qk};
    v.at = {kv_docs, p.h_kv, p.d_v};
    q.x = in.q, k.x = in.k, v.x = in.v;
    if (p.payload_inputs) q.given = in.q_payload, k.given = in.k_payload, v.given = in.v_payload;
    const quantized nowhere;
    centre.carve(memory, p, kv_docs, in.key_shift);
    k.shift = centre.key_shift;
    q.carve(memory, p, false, p.save_payloads ? save.q_payload : nowhere);
    k.carve(memory, p, p.key_centring != key_centring::off, p.save_payloads ? save.k_payload : nowhere);
    v.carve(memory, p, false, p.save_payloads ? save.v_payload : nowhere);
  }
  template <class Inputs>
  pass_data<Recipe> data(const problem& p, const Inputs& in) const {
    return {p, p.scale(), q.at.docs, k.at.docs, q.payload(), k.payload(), v.payload(), in.sink, centre.q_shift};
  }
  template <class Inputs>
  void run(launcher<B>& on, const problem& p, const Inputs& in) const {
    const auto run = [&](const auto& kernel) { on.run(kernel); };
    centre.find_mean(run, p, in.k, k.at.docs);
    q.run(on);
    k.run(on);
    v.run(on);
    centre.find_shifts(run, data(p, in), p.payload_inputs ? const_tensor{} : in.q);
  }
};

}  // namespace detail

OCTAVO_END_NAMESPACE
