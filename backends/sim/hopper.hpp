// SPDX-License-Identifier: Apache-2.0
// sim-cuda-hopper: the Hopper schedules, the same source, run on the host with every instruction modelled. What no
// schedule takes runs on the generic loops of cpu. Slow, and not a way to compute: a way to see what the kernels do.
#pragma once

#include <octavo/backends/cuda/hopper/passes.hpp>
#include <octavo/backends/sim/simulated.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_cuda_hopper : simulated<hopper::passes> {
  /// Recipes that no schedule takes are another backend's affair.
  template <class R>
  static constexpr bool computes = hopper::has_schedule<R>;

  static constexpr const char* name() { return "sim-cuda-hopper"; }
  static text device() { return "a model of Hopper's instructions, on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};

static_assert(require_backend<sim_cuda_hopper>::value);

OCTAVO_END_CPU_NAMESPACE
