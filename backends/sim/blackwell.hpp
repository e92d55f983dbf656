// SPDX-License-Identifier: Apache-2.0
// sim-cuda-blackwell: the Blackwell schedules, the same source, run on the host with every instruction modelled. What no
// schedule takes runs on the generic loops of cpu. Slow, and not a way to compute: a way to see what the kernels do.
#pragma once

#include <octavo/backends/cpu/backend.hpp>
#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/sim/backend.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_cuda_blackwell : cpu {
  struct queue : cpu::queue, sim::queue_state {};

  /// Recipes that no schedule takes are another backend's affair.
  template <class R>
  static constexpr bool computes = blackwell::has_schedule<R>;

  static constexpr const char* name() { return "sim-cuda-blackwell"; }
  static text device() { return "a model of Blackwell's instructions, on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }

  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    return blackwell::passes::workspace_bytes<Config>(p, which);
  }
  template <class Config>
  static status forward(queue& on, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& scratch) {
    return blackwell::passes::forward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status backward(queue& on, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& scratch) {
    return blackwell::passes::backward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status delta_sums(queue& on, const problem& p, const backward_inputs& in, const delta_outputs& out,
                           const workspace& scratch) {
    return blackwell::passes::delta_sums<Config>(on, p, in, out, scratch);
  }
};

static_assert(require_backend<sim_cuda_blackwell>::value);

OCTAVO_END_CPU_NAMESPACE
