// SPDX-License-Identifier: Apache-2.0
// The tensors that go into and come out of the public functions. Pointers may be device pointers; nothing is owned.
#pragma once

#include <octavo/tensor/problem.hpp>
#include <octavo/tensor/tensor.hpp>

#include <cstddef>

OCTAVO_BEGIN_NAMESPACE

/// An FP8 tensor with its scales: what a recipe makes of a tensor [b, s, h, d], and what the main loops read.
/// real value = payload * scale. Scales are contiguous; for packed documents (n of them) the second shape holds.
///
///     recipe    scale     rowwise_scale                                columnwise_scale
///     token     e8m0      [b, h, s]             [h, total]             -
///     tile      e8m0      [b, h, ceil(s/128)]   [h, total/128 + n]     -
///     tensor    float     [b, h]                [h, n]                 -
///     mx32      e8m0      [b, h, s, d/32]       [h, total, d/32]       [b, h, ceil(s/32), d]   [h, total/32 + n, d]
///     bf16      none      (the payload is BF16)
///
/// In a packed tensor block k of document i stands at index offsets[i] / block + i + k, so that blocks of different
/// documents never share a scale and no index needs a prefix sum.
template <class Tensor, class Void>
struct basic_quantized {
  Tensor rowwise;  ///< payload; its scales run along d
  Void* rowwise_scale = nullptr;
  Tensor columnwise;  ///< mx32 only: the payload whose scales run along s
  Void* columnwise_scale = nullptr;

  OCTAVO_HD constexpr explicit operator bool() const { return static_cast<bool>(rowwise); }
};
struct quantized : basic_quantized<tensor, void> {};
struct const_quantized : basic_quantized<const_tensor, const void> {
  constexpr const_quantized() = default;
  constexpr const_quantized(const quantized& q)
      : basic_quantized<const_tensor, const void>{q.rowwise, q.rowwise_scale, q.columnwise, q.columnwise_scale} {}
};

struct forward_inputs {
  const_tensor q;                                         ///< [b, s_q, h_q, d_qk] of T; packed [total_q, h_q, d_qk]
  const_tensor k;                                         ///< [b, s_kv, h_kv, d_qk]
  const_tensor v;                                         ///< [b, s_kv, h_kv, d_v]
  offsets cu_seqlens_q{};                                 ///< packed only: [b + 1]
  offsets cu_seqlens_kv{};                                ///< packed only: [b + 1]
  const float* sink = nullptr;                            ///< [h_q], logits in the units of S; with problem.sink. Of the parts of a split, one has it
  const float* key_shift = nullptr;                       ///< [b, h_kv, d_qk]; with key_centring::given
  const_quantized q_payload{}, k_payload{}, v_payload{};  ///< instead of q, k, v, with problem.payload_inputs
};

/// Result tensors (o, dq, dk, dv) may be of T, to which they are rounded, or of f32, unrounded.
struct forward_outputs {
  tensor o;              ///< [b, s_q, h_q, d_v] of T or f32
  float* lse = nullptr;  ///< [b, h_q, s_q] natural log; packed [h_q, total_q]; -inf where no key is allowed
  float* m = nullptr;    ///< [b, h_q, s_q] log2-unit row maximum M that the backward takes (of the centred scores)
  float* l = nullptr;    ///< [b, h_q, s_q] row sum l relative to M that the backward takes
  tensor o_residual{};   ///< [b, s_q, h_q, d_v] of T: T(O - T(O)); with problem.o_residual
  quantized q_payload{}, k_payload{}, v_payload{};  ///< with problem.save_payloads
};

struct backward_inputs {
  const_tensor q, k, v;       ///< as given to the forward
  const_tensor dout;          ///< [b, s_q, h_q, d_v] of T
  const_tensor o{};           ///< [b, s_q, h_q, d_v] of T or f32: what the forward wrote; stale and consistent read it
  const_tensor o_residual{};  ///< consistent reads it where problem.o_residual is set
  const float* m = nullptr;   ///< [b, h_q, s_q] from the forward
  const float* l = nullptr;   ///< [b, h_q, s_q] from the forward
  offsets cu_seqlens_q{}, cu_seqlens_kv{};
  const float* sink = nullptr;         ///< [h_q]
  const float* key_shift = nullptr;    ///< [b, h_kv, d_qk]
  const float* delta_shift = nullptr;  ///< [b, h_q, s_q], optional: c, equal on all parts of a split sequence
  const float* delta_n = nullptr;      ///< [b, h_q, s_q] sum_j 2^(s-M) over all parts; with problem.delta_halves
  const float* delta_sum = nullptr;  ///< [b, h_q, s_q] sum_j 2^(s-M) (dP - c) over all parts; with problem.delta_halves
  const_quantized q_payload{}, k_payload{}, v_payload{}, dout_payload{};
};

struct backward_outputs {
  tensor dq, dk, dv;       ///< shapes of q, k, v, of T or f32
  float* dsink = nullptr;  ///< [h_q]; with problem.sink
  // Optional diagnostics, skipped where null:
  float* delta = nullptr;  ///< [b, h_q, s_q]
  float* row_sum =
      nullptr;          ///< [b, h_q, s_q] sum_j dS_ij (+ the sink's) of the softmax's gradient, before dS is quantised
  float* l1 = nullptr;  ///< [b, h_q, s_q] sum_j |dS_ij|
  quantized dout_payload{};  ///< with problem.save_payloads
};

/// The two sums of the matched delta over the keys of this call, relative to the M and delta_shift of backward_inputs.
struct delta_outputs {
  float* n = nullptr;    ///< [b, h_q, s_q]
  float* sum = nullptr;  ///< [b, h_q, s_q]
};

/// One part of a forward over split keys, for attention_combine.
struct partial_forward {
  const_tensor o;
  const float* m = nullptr;
  const float* l = nullptr;
  const float* lse = nullptr;
};

/// Parts that one attention_combine takes. More are combined in steps: a combined part is a part again.
inline constexpr int max_combined_parts = 32;

/// Scratch memory of the caller. Nothing in it needs to be initialised or kept between calls.
struct workspace {
  void* data = nullptr;
  std::size_t bytes = 0;
};

OCTAVO_END_NAMESPACE
