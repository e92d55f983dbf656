// SPDX-License-Identifier: Apache-2.0
// sim-hip-cdna4: the lane-level schedules on CDNA4's matrix instructions, the same source, run on the host with every
// instruction modelled. What no schedule takes runs on the generic loops of cpu.
#pragma once

#include <octavo/backends/hip/cdna4/machine.hpp>
#include <octavo/backends/sim/lanes.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct sim_hip_cdna4 : sim_lanes<cdna4::machine> {
  static constexpr const char* name() { return "sim-hip-cdna4"; }
  static text device() { return "a model of CDNA4's instructions (gfx950), on one thread"; }

  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return sim::launch_blocks(on, kernel, name());
  }
};

static_assert(require_backend<sim_hip_cdna4>::value);

OCTAVO_END_CPU_NAMESPACE
