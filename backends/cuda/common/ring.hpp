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
  /// Writer: until the readers of the round before have left it (in the first round it is free).
  OCTAVO_DEVICE void wait_empty(ring<stages>& r) const { r.empty[stage].wait(parity ^ 1); }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
