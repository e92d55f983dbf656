// SPDX-License-Identifier: Apache-2.0
// Runs a function in the 64 lanes of a simulated wave.
#pragma once

#include <octavo/backends/sim/runtime.hpp>

#include <cstdint>

namespace hip_test {

using namespace octavo::backends;

template <class Function>
struct wave_kernel {
  static constexpr int threads = 64;
  static constexpr int warp_lanes = 64;
  static constexpr int shared_bytes = 1024;
  Function function;
  std::int64_t blocks() const { return 1; }
  void operator()() const { function(sim::this_thread().index); }
};

/// function(lane) in every lane.
template <class Function>
sim::report in_wave(Function function, sim::accumulation how = sim::accumulation::ideal) {
  return sim::launch(wave_kernel<Function>{function}, {.accumulator = how});
}

}  // namespace hip_test
