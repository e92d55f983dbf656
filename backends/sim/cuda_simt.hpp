// SPDX-License-Identifier: Apache-2.0
// sim-cuda-simt: the lane-level schedules on NVIDIA's mma.sync, the same source, run on the host with every instruction
// modelled. What no schedule takes runs on the generic loops of cpu.
#pragma once

#include <octavo/backends/cuda/simt/machine.hpp>
#include <octavo/backends/sim/lanes.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_cuda_simt : sim_lanes<nvidia::machine> {
  static constexpr const char* name() { return "sim-cuda-simt"; }
  static text device() { return "a model of mma.sync on an H200, on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};

static_assert(require_backend<sim_cuda_simt>::value);

OCTAVO_END_CPU_NAMESPACE
