// SPDX-License-Identifier: Apache-2.0
// sim-hip-cdna3: the lane-level schedules on CDNA3's matrix instructions, the same source, run on the host with every
// instruction modelled. What no schedule takes runs on the generic loops of cpu.
#pragma once

#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/sim/lanes.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_hip_cdna3 : sim_lanes<cdna3::machine> {
  static constexpr const char* name() { return "sim-hip-cdna3"; }
  static text device() { return "a model of CDNA3's instructions (gfx942), on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};

static_assert(require_backend<sim_hip_cdna3>::value);

OCTAVO_END_CPU_NAMESPACE
