// SPDX-License-Identifier: Apache-2.0
// What the host twins of the lane-level backends share: the schedules of backends/simt on a machine whose instructions are
// models, and the generic loops of cpu for what no schedule takes.
#pragma once

#include <octavo/backends/cpu/backend.hpp>
#include <octavo/backends/sim/backend.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

template <class M>
struct sim_lanes : cpu {
  struct queue : cpu::queue, sim::queue_state {};
  using schedules = simt::passes<M>;

  /// Recipes that no schedule takes are another backend's affair.
  template <class R>
  static constexpr bool computes = simt::has_schedule<M, R>;

  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    return schedules::template workspace_bytes<Config>(p, which);
  }
  template <class Config>
  static status forward(queue& on, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& scratch) {
    return schedules::template forward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status backward(queue& on, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& scratch) {
    return schedules::template backward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status delta_sums(queue& on, const problem& p, const backward_inputs& in, const delta_outputs& out,
                           const workspace& scratch) {
    return schedules::template delta_sums<Config>(on, p, in, out, scratch);
  }
};

OCTAVO_END_CPU_NAMESPACE
