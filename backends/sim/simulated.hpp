// SPDX-License-Identifier: Apache-2.0
// What the host twins of GPU backends share: a queue that simulates, the passes of the schedules, and the generic loops of
// cpu for what no schedule takes.
#pragma once

#include <octavo/backends/cpu/backend.hpp>
#include <octavo/backends/sim/backend.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

/// Passes: of the schedules, which ask for launch_blocks(queue, kernel). A twin adds that, a name, and what it computes.
template <class Passes>
struct simulated : cpu {
  struct queue : cpu::queue, sim::queue_state {};

  template <class Config>
  static std::size_t workspace_bytes(const problem& p, pass which) {
    return Passes::template workspace_bytes<Config>(p, which);
  }
  template <class Config>
  static status forward(queue& on, const problem& p, const forward_inputs& in, const forward_outputs& out,
                        const workspace& scratch) {
    return Passes::template forward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status backward(queue& on, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         const workspace& scratch) {
    return Passes::template backward<Config>(on, p, in, out, scratch);
  }
  template <class Config>
  static status delta_sums(queue& on, const problem& p, const backward_inputs& in, const delta_outputs& out,
                           const workspace& scratch) {
    return Passes::template delta_sums<Config>(on, p, in, out, scratch);
  }
};

OCTAVO_END_CPU_NAMESPACE
