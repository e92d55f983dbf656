// SPDX-License-Identifier: Apache-2.0
// sim-cuda-blackwell: the Blackwell schedules, the same source, run on the host with every instruction modelled. What no
// schedule takes runs on the generic loops of cpu. Slow, and not a way to compute: a way to see what the kernels do.
#pragma once

#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/sim/simulated.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_cuda_blackwell : simulated<blackwell::passes> {
  /// Recipes that no schedule takes are another backend's affair.
  template <class R>
  static constexpr bool computes = blackwell::has_schedule<R>;

  static constexpr const char* name() { return "sim-cuda-blackwell"; }
  static text device() { return "a model of Blackwell's instructions, on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};

static_assert(require_backend<sim_cuda_blackwell>::value);

OCTAVO_END_CPU_NAMESPACE
