// SPDX-License-Identifier: Apache-2.0
// A ring of stages in shared memory between one thread that starts copies and the warps that read them.
#pragma once

#include <octavo/backends/cuda/ptx/copy.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// The barriers of a ring: per stage one that its bytes complete, and one at which its readers arrive.
template <int stages>
struct ring {
  ptx::shared_barrier full[stages], empty[stages];

  OCTAVO_DEVICE void init(int readers) {
    for (int s = 0; s < stages; ++s) {
      full[s].init(1);
      empty[s].init(readers);
    }
  }
};

/// Where a thread is in a ring: the same walk for the writer and for each reader.
template <int stages>
struct ring_place {
  int stage = 0, parity = 0;

  OCTAVO_DEVICE void advance() {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
  /// Reader: until the stage is full.
  OCTAVO_DEVICE void wait_full(ring<stages>& r) const { r.full[stage].wait(parity); }
  /// Reader: the warp has read the stage.
  OCTAVO_DEVICE void release(ring<stages>& r, int lane) const {
    ptx::sync_warp();
    if (lane == 0) r.empty[stage].arrive();
  }
  /// Writer: until the readers of the round before have left it (in the first round it is free).
  OCTAVO_DEVICE void wait_empty(ring<stages>& r) const { r.empty[stage].wait(parity ^ 1); }
};

/// Two warpgroups of readers that take turns at the tensor cores: while one starts its products and they run, the other
/// does arithmetic. Left alone they end up in step, both waiting for products and then both for the arithmetic units.
/// Both make the same number of turns.
struct turns {
  int group;  ///< the caller's warpgroup of the block, 1 or 2

  OCTAVO_DEVICE void begin() const {
    if (group == 2) pass();
  }
  OCTAVO_DEVICE void take() const { ptx::sync_named(first_barrier + group, both); }
  OCTAVO_DEVICE void pass() const { ptx::arrive_named(first_barrier + 3 - group, both); }
  /// After the last turn: what the other's last pass() has left behind.
  OCTAVO_DEVICE void end() const {
    if (group == 1) take();
  }

  static constexpr int first_barrier = 2;  ///< 3 and 4 are taken: 1 and 2 are the groups' own
  static constexpr int both = 2 * ptx::group_threads;
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
