// SPDX-License-Identifier: Apache-2.0
// What the units that compute a result keep of their sums.
#pragma once

#include <octavo/backend/engine.hpp>

#include <cmath>

#include "support/device_memory.hpp"

namespace octavo_tests {

/// Whether a result comes from product sums that keep fewer bits than FP32: Hopper's FP8 tensor cores, and what computes
/// as they do, where a simulator is told to. (Problems that no Hopper schedule takes run on FP32 units there, and are judged so.)
inline bool truncates(const octavo::backend_entry& backend, const octavo::engine& e, const octavo::problem& p) {
  const bool simulated = backend.name == "sim-cuda-hopper" && simulated_sums == octavo::accumulator::model;
  if (backend.name != "cuda-hopper" && !simulated) return false;
  return (e.recipe == "tile" || e.recipe == "token") && !e.e5m2_gradients && p.d_qk == p.d_v &&
         (p.d_qk == 64 || p.d_qk == 128);
}

/// How far such a unit may move a weight of the softmax, relative to it. The unit keeps 13 bits below the leading one of
/// the largest product or sum and cuts once per 32 channels; what that does to a score it does to the weight's numerator
/// and to the row's sum. (largest: of the scores' magnitudes, in natural units.)
inline double truncation_of_weights(const octavo::problem& p, double largest) {
  return 2 * std::ldexp(static_cast<double>(p.d_qk) / 32 * largest, -13);
}

}  // namespace octavo_tests
