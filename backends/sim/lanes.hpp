// SPDX-License-Identifier: Apache-2.0
// What the host twins of the lane-level backends share: the schedules of backends/simt on a machine whose instructions are
// models, and the generic loops of cpu for what no schedule takes.
#pragma once

#include <octavo/backends/sim/simulated.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

template <class M>
struct sim_lanes : simulated<simt::passes<M>> {
  /// Recipes that no schedule takes are another backend's affair.
  template <class R>
  static constexpr bool computes = simt::has_schedule<M, R>;
};

OCTAVO_END_CPU_NAMESPACE
