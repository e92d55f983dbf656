// SPDX-License-Identifier: Apache-2.0
// What a backend offers beside the others' entries if it simulates a device: how its products add up, and what its
// kernels did.
#pragma once

#include <octavo/config.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE

/// How a simulated matrix instruction adds up.
enum class accumulator {
  ideal,  ///< exactly, rounded to FP32 once per instruction
  model,  ///< as the device's unit does
};

/// What the launches of one kernel did, added up.
struct kernel_counts {
  std::string name;
  std::int64_t launches = 0;
  std::int64_t blocks = 0;
  std::map<std::string, std::int64_t> matrix_instructions{};  ///< executed, by name
  std::int64_t barriers = 0;                                  ///< of a block or several of its warps, completed
  std::int64_t phases = 0;                                    ///< of barriers in shared memory that ended
  std::int64_t copied_bytes = 0;                              ///< into shared memory by bulk copies
  int shared_bytes = 0;                                       ///< of a block
  bool races_checked = false;                                 ///< every access was looked at
};

/// All null where the backend is no simulator.
struct simulation_functions {
  void (*set_accumulator)(void* queue, accumulator) = nullptr;  ///< ideal unless set
  /// Of everything that the queue ran, in the order of first launches.
  const std::vector<kernel_counts>& (*kernels)(void* queue) = nullptr;
};

OCTAVO_END_NAMESPACE
