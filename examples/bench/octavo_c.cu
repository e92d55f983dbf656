// SPDX-License-Identifier: Apache-2.0
// The Hopper backend behind a C interface, for programs that measure it from other languages (peers.py):
//
//     nvcc -std=c++20 -O3 -gencode arch=compute_90a,code=sm_90a -Xcompiler -fPIC -Xlinker -s -shared \
//          -I include -o liboctavo_c.so examples/bench/octavo_c.cu
//
// Tensors are contiguous: [b, s, h, d] of BF16 or payloads of E4M3, scales and statistics as tensor/arguments.hpp lays
// them out. Functions answer NULL, or what went wrong; the sentence stands until the next call of the same thread.
#include <octavo/attention.hpp>
#include <octavo/backends/cuda/hopper/backend.hpp>

#include <cstdint>
#include <type_traits>

extern "C" {

enum { octavo_c_tile, octavo_c_token };                          ///< octavo_c_problem::recipe
enum { octavo_c_matched, octavo_c_consistent, octavo_c_stale };  ///< octavo_c_problem::delta
enum { octavo_c_pass_forward, octavo_c_pass_backward };          ///< of octavo_c_workspace

struct octavo_c_problem {
  std::int64_t b, h_q, h_kv, s_q, s_kv, d;
  std::int64_t window_left, window_right;  ///< -1: unbounded
  std::int32_t recipe, delta, causal;
  std::int32_t payload_inputs;  ///< operands come as payloads with scales
  std::int32_t save_payloads;   ///< operands come as BF16, and payloads with scales are written
  std::int32_t o_residual, deterministic, reserved;
};

struct octavo_c_operand {
  const void* values;  ///< BF16
  void* payload;       ///< E4M3: read or written, as the problem says
  void* scale;         ///< E8M0
};

struct octavo_c_forward_call {
  octavo_c_operand q, k, v;
  void *o, *o_residual;  ///< BF16; the residual may be NULL where the problem wants none
  float *lse, *m, *l;
};

struct octavo_c_backward_call {
  octavo_c_operand q, k, v, dout;
  const void *o, *o_residual;
  const float *m, *l;
  void *dq, *dk, *dv;           ///< BF16
  float *delta, *row_sum, *l1;  ///< diagnostics, may be NULL
};

struct octavo_c_memory {
  void* workspace;
  std::int64_t bytes;
  void* stream;
};

}  // extern "C"

namespace {

using backend = octavo::backends::cuda_hopper;
namespace hopper = octavo::backends::hopper;

const char* say(const octavo::text& why) {
  thread_local octavo::text last;
  last = why;
  return last.c_str();
}
const char* answer(const octavo::status& s) { return s ? nullptr : say(s.message); }

octavo::problem problem_of(const octavo_c_problem& c) {
  octavo::problem p;
  p.b = c.b, p.h_q = c.h_q, p.h_kv = c.h_kv, p.s_q = c.s_q, p.s_kv = c.s_kv;
  p.d_qk = p.d_v = c.d;
  p.element = octavo::dtype::bf16;
  p.mask.causal = c.causal ? octavo::causal_mask::top_left : octavo::causal_mask::none;
  p.mask.window_left = c.window_left;
  p.mask.window_right = c.window_right;
  p.payload_inputs = c.payload_inputs;
  p.save_payloads = c.save_payloads;
  p.o_residual = c.o_residual;
  p.deterministic = c.deterministic;
  return p;
}

/// Calls f.operator()<Config>() with the config that the problem names.
template <class F>
const char* with_config(const octavo_c_problem& c, const F& f) {
  using namespace octavo;
  if (c.recipe == octavo_c_tile && c.delta == octavo_c_matched)
    return f.template operator()<config<backend, recipe::tile, delta::matched>>();
  if (c.recipe == octavo_c_tile && c.delta == octavo_c_consistent)
    return f.template operator()<config<backend, recipe::tile, delta::consistent>>();
  if (c.recipe == octavo_c_token && c.delta == octavo_c_matched)
    return f.template operator()<config<backend, recipe::token, delta::matched>>();
  if (c.recipe == octavo_c_token && c.delta == octavo_c_consistent)
    return f.template operator()<config<backend, recipe::token, delta::consistent>>();
#ifdef OCTAVO_C_STALE
  if (c.recipe == octavo_c_tile && c.delta == octavo_c_stale)
    return f.template operator()<config<backend, recipe::tile, delta::stale>>();
#endif
  return say("this recipe with this delta is not compiled into the library");
}

/// Contiguous tensors of one side of a problem.
struct shape {
  std::int64_t s, h, d;
  octavo::tensor bf16(void* data) const { return octavo::contiguous(data, octavo::dtype::bf16, s, h, d); }
  octavo::const_tensor bf16(const void* data) const { return octavo::contiguous(data, octavo::dtype::bf16, s, h, d); }
  octavo::quantized payload(const octavo_c_operand& x) const {
    octavo::quantized q;
    q.rowwise = octavo::contiguous(x.payload, octavo::dtype::e4m3, s, h, d);
    q.rowwise_scale = x.scale;
    return q;
  }
};

/// One operand, as values or as a payload.
void give(const octavo::problem& p, const shape& at, const octavo_c_operand& x, octavo::const_tensor& values,
          octavo::const_quantized& payload) {
  if (p.payload_inputs)
    payload = at.payload(x);
  else
    values = at.bf16(x.values);
}

/// One tensor's quantise kernel alone, as the backward runs it: row and column images, and factors.
template <class Recipe, int D>
struct quantise_pass {
  hopper::image_input<Recipe, D> input;

  explicit quantise_pass(const octavo::problem& p, const void* values, octavo::detail::carver& memory) {
    input.work.at = {octavo::query_documents(p, {}), p.h_q, p.d_qk};
    input.work.x = shape{p.s_q, p.h_q, p.d_qk}.bf16(values);
    input.carve(memory, {.rows = true, .columns = true});
  }
};

template <class F>
const char* with_quantise_pass(const octavo_c_problem& c, const void* values, octavo::detail::carver& memory,
                               const F& f) {
  const octavo::problem p = problem_of(c);
  if (const octavo::status s = octavo::validate(p); !s) return answer(s);
  if (p.d_qk != 64 && p.d_qk != 128) return say("the quantise kernel is for d 64 and d 128");
  return hopper::with_head_dim(p, [&](auto d) {
    if (c.recipe == octavo_c_token) return f(p, quantise_pass<octavo::recipe::token, d>(p, values, memory));
    return f(p, quantise_pass<octavo::recipe::tile, d>(p, values, memory));
  });
}

}  // namespace

extern "C" {

/// What was compiled, and when.
const char* octavo_c_version() { return "cuda-hopper, compiled " __DATE__ " " __TIME__; }

/// sizeof of the structures above, in their order: for callers that have declared them in another language.
std::int64_t octavo_c_struct_bytes(std::int32_t which) {
  const std::size_t bytes[] = {sizeof(octavo_c_problem), sizeof(octavo_c_operand), sizeof(octavo_c_forward_call),
                               sizeof(octavo_c_backward_call), sizeof(octavo_c_memory)};
  return which >= 0 && which < 5 ? static_cast<std::int64_t>(bytes[which]) : -1;
}

/// NULL where a Hopper GPU is the current device.
const char* octavo_c_unavailable() {
  const octavo::text why = backend::unavailable();
  return why.empty() ? nullptr : say(why);
}

/// Bytes of scratch that a pass needs. Needs no device.
const char* octavo_c_workspace(const octavo_c_problem* c, std::int32_t pass, std::int64_t* bytes) {
  return with_config(*c, [&]<class Config>() {
    const octavo::problem p = problem_of(*c);
    if (const octavo::status s = octavo::validate(p); !s) return answer(s);
    if (const octavo::support s = octavo::supports<Config>(p); !s) return say(s.reason);
    const octavo::pass which = pass == octavo_c_pass_backward ? octavo::pass::backward : octavo::pass::forward;
    *bytes = static_cast<std::int64_t>(octavo::workspace_size<Config>(p, which));
    return static_cast<const char*>(nullptr);
  });
}

/// With save_payloads it makes the payloads of Q, K and V, too.
const char* octavo_c_forward(const octavo_c_problem* c, const octavo_c_forward_call* call,
                             const octavo_c_memory* memory) {
  return with_config(*c, [&]<class Config>() {
    const octavo::problem p = problem_of(*c);
    const shape q{p.s_q, p.h_q, p.d_qk}, kv{p.s_kv, p.h_kv, p.d_qk};
    octavo::forward_inputs in;
    give(p, q, call->q, in.q, in.q_payload);
    give(p, kv, call->k, in.k, in.k_payload);
    give(p, kv, call->v, in.v, in.v_payload);
    octavo::forward_outputs out{.o = q.bf16(call->o), .lse = call->lse, .m = call->m, .l = call->l};
    if (p.o_residual) out.o_residual = q.bf16(call->o_residual);
    if (p.save_payloads) {
      out.q_payload = q.payload(call->q);
      out.k_payload = kv.payload(call->k);
      out.v_payload = kv.payload(call->v);
    }
    typename Config::backend::queue queue{static_cast<cudaStream_t>(memory->stream)};
    return answer(octavo::attention_forward<Config>(queue, p, in, out,
                                                    {memory->workspace, static_cast<std::size_t>(memory->bytes)}));
  });
}

/// With save_payloads it makes the payload of dO, too.
const char* octavo_c_backward(const octavo_c_problem* c, const octavo_c_backward_call* call,
                              const octavo_c_memory* memory) {
  return with_config(*c, [&]<class Config>() {
    const octavo::problem p = problem_of(*c);
    const shape q{p.s_q, p.h_q, p.d_qk}, kv{p.s_kv, p.h_kv, p.d_qk};
    octavo::backward_inputs in;
    give(p, q, call->q, in.q, in.q_payload);
    give(p, kv, call->k, in.k, in.k_payload);
    give(p, kv, call->v, in.v, in.v_payload);
    give(p, q, call->dout, in.dout, in.dout_payload);
    if (Config::delta::reads_o) {
      in.o = q.bf16(call->o);
      if (p.o_residual) in.o_residual = q.bf16(call->o_residual);
    }
    in.m = call->m;
    in.l = call->l;
    octavo::backward_outputs out{.dq = q.bf16(call->dq), .dk = kv.bf16(call->dk), .dv = kv.bf16(call->dv)};
    out.delta = call->delta;
    out.row_sum = call->row_sum;
    out.l1 = call->l1;
    if (p.save_payloads) out.dout_payload = q.payload(call->dout);
    typename Config::backend::queue queue{static_cast<cudaStream_t>(memory->stream)};
    return answer(octavo::attention_backward<Config>(queue, p, in, out,
                                                     {memory->workspace, static_cast<std::size_t>(memory->bytes)}));
  });
}

/// Scratch of octavo_c_quantise. Needs no device.
const char* octavo_c_quantise_workspace(const octavo_c_problem* c, std::int64_t* bytes) {
  octavo::detail::carver memory(nullptr);
  return with_quantise_pass(*c, nullptr, memory, [&](const octavo::problem&, const auto&) {
    *bytes = static_cast<std::int64_t>(memory.used());
    return static_cast<const char*>(nullptr);
  });
}

/// From [b, s_q, h_q, d] of BF16 to both images, in the workspace: what the quantise step costs by itself.
const char* octavo_c_quantise(const octavo_c_problem* c, const void* values, const octavo_c_memory* m) {
  octavo::detail::carver memory(m->workspace);
  return with_quantise_pass(*c, values, memory, [&](const octavo::problem& p, const auto& pass) {
    if (memory.used() > static_cast<std::size_t>(m->bytes)) return say("the workspace is too small");
    backend::queue queue{static_cast<cudaStream_t>(m->stream)};
    hopper::block_launcher<backend> on(queue, p, nullptr);
    on.run(pass.input.work);
    return answer(on.status());
  });
}

}  // extern "C"
