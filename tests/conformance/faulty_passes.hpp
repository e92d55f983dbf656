// SPDX-License-Identifier: Apache-2.0
// Backends that give a correct pass wrong arguments, or spoil what it wrote: mistakes of the host side.
#pragma once

#include <octavo/attention.hpp>

#include "conformance/faulty_operations.hpp"

namespace octavo_tests::faults {

using octavo::forward_inputs, octavo::forward_outputs, octavo::backward_inputs, octavo::backward_outputs;
using octavo::problem, octavo::status, octavo::workspace;
using queue = cpu::queue;

template <class Config, class Delta = typename Config::delta>
using on_cpu = octavo::config<cpu, typename Config::recipe, Delta>;

/// The CPU backend's passes; a fault replaces one or both.
struct correct_passes : cpu {
  template <class Config>
  static status forward(queue& q, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& w) {
    return cpu::forward<on_cpu<Config>>(q, p, in, out, w);
  }
  template <class Config>
  static status backward(queue& q, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& w) {
    return cpu::backward<on_cpu<Config>>(q, p, in, out, w);
  }
};

/// Changes the problem and the inputs of both passes.
template <class Change>
struct wrong_arguments : cpu {
  template <class Config>
  static status forward(queue& q, problem p, forward_inputs in, const forward_outputs& out, const workspace& w) {
    Change::apply(p, in);
    return cpu::forward<on_cpu<Config>>(q, p, in, out, w);
  }
  template <class Config>
  static status backward(queue& q, problem p, backward_inputs in, const backward_outputs& out, const workspace& w) {
    Change::apply(p, in);
    return cpu::backward<on_cpu<Config>>(q, p, in, out, w);
  }
};
struct mask_sees_one_key_more : wrong_arguments<mask_sees_one_key_more> {
  static void apply(problem& p, auto&) { ++p.shard.q_begin; }
};
struct mask_sees_one_key_less : wrong_arguments<mask_sees_one_key_less> {
  static void apply(problem& p, auto&) { ++p.shard.kv_begin; }
};
struct window_one_too_wide : wrong_arguments<window_one_too_wide> {
  static void apply(problem& p, auto&) {
    if (p.mask.window_left >= 0) ++p.mask.window_left;
  }
};
struct wrong_head_group : wrong_arguments<wrong_head_group> {
  static void apply(problem& p, auto& in) {
    if (p.h_kv != 2 || p.h_q == 2) return;  // two groups read each other's keys
    in.k.data = static_cast<const char*>(in.k.data) + in.k.stride_h * octavo::bytes_of(in.k.type);
    in.k.stride_h = -in.k.stride_h;
  }
};
struct scale_of_a_padded_head : wrong_arguments<scale_of_a_padded_head> {
  static void apply(problem& p, auto&) {
    if (!p.softmax_scale) p.softmax_scale = 1 / std::sqrt(static_cast<float>((p.d_qk + 127) / 128 * 128));
  }
};

/// Changes the problem or the inputs of the forward alone.
struct sink_left_out : correct_passes {
  template <class Config>
  static status forward(queue& q, problem p, forward_inputs in, const forward_outputs& out, const workspace& w) {
    p.sink = false, in.sink = nullptr;
    return cpu::forward<on_cpu<Config>>(q, p, in, out, w);
  }
};
struct last_key_tile_skipped : correct_passes {
  template <class Config>
  static status forward(queue& q, problem p, const forward_inputs& in, const forward_outputs& out, const workspace& w) {
    if (!p.packed && p.s_kv > cpu::tile_kv) p.s_kv = (p.s_kv - 1) / cpu::tile_kv * cpu::tile_kv;
    return cpu::forward<on_cpu<Config>>(q, p, in, out, w);
  }
};

/// Spoils what the forward wrote, before anyone reads it.
template <class Change>
struct wrong_statistics : correct_passes {
  template <class Config>
  static status forward(queue& q, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& w) {
    const status s = cpu::forward<on_cpu<Config>>(q, p, in, out, w);
    for (std::int64_t i = 0; i < p.stat_rows() * p.h_q; ++i) Change::apply(out, i);
    return s;
  }
};
struct p_scale_left_in_l : wrong_statistics<p_scale_left_in_l> {
  static void apply(const forward_outputs& out, std::int64_t i) { out.l[i] *= 256; }
};
struct lse_in_log2 : wrong_statistics<lse_in_log2> {
  static void apply(const forward_outputs& out, std::int64_t i) { out.lse[i] *= octavo::log2_e; }
};
struct lse_finite_without_keys : wrong_statistics<lse_finite_without_keys> {
  static void apply(const forward_outputs& out, std::int64_t i) { out.lse[i] = std::max(out.lse[i], -1e30f); }
};
struct lse_not_written : wrong_statistics<lse_not_written> {
  static void apply(const forward_outputs& out, std::int64_t i) {
    if (i % 7 == 0) out.lse[i] = std::numeric_limits<float>::quiet_NaN();
  }
};
/// One element of O in 64, a step of BF16 too large: far too many to be roundings of ties, though O is within its bound.
struct o_off_by_a_step : correct_passes {
  template <class Config>
  static status forward(queue& q, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& w) {
    const status s = cpu::forward<on_cpu<Config>>(q, p, in, out, w);
    if (out.o.type != octavo::dtype::bf16) return s;
    auto* o = static_cast<std::uint16_t*>(out.o.data);  // contiguous in the rows that faults are tried on
    const std::int64_t elements = (p.packed ? p.total_q : p.b * p.s_q) * p.h_q * p.d_v;
    for (std::int64_t i = 0; i < elements; i += 64)
      if ((o[i] & 0x7fff) != 0) ++o[i];
    return s;
  }
};
struct one_statistic_too_many : correct_passes {
  template <class Config>
  static status forward(queue& q, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& w) {
    const status s = cpu::forward<on_cpu<Config>>(q, p, in, out, w);
    out.m[p.stat_rows() * p.h_q] = 0;
    return s;
  }
};

struct stale_delta_for_matched : correct_passes {
  template <class Config>
  static status backward(queue& q, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& w) {
    return cpu::backward<on_cpu<Config, octavo::delta::stale>>(q, p, in, out, w);
  }
};
struct centring_forgotten_in_backward : correct_passes {
  template <class Config>
  static status backward(queue& q, problem p, backward_inputs in, const backward_outputs& out, const workspace& w) {
    p.key_centring = octavo::key_centring::off, in.key_shift = nullptr;
    return cpu::backward<on_cpu<Config>>(q, p, in, out, w);
  }
};
struct softmax_scale_missing_in_dk : correct_passes {
  template <class Config>
  static status backward(queue& q, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& w) {
    const status s = cpu::backward<on_cpu<Config>>(q, p, in, out, w);
    float* dk = static_cast<float*>(out.dk.data);  // contiguous FP32 in the rows that faults are tried on
    const std::int64_t elements = (p.packed ? p.total_kv : p.b * p.s_kv) * p.h_kv * p.d_qk;
    for (std::int64_t i = 0; i < elements; ++i) dk[i] /= p.scale();
    return s;
  }
};

}  // namespace octavo_tests::faults
