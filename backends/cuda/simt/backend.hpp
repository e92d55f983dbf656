// SPDX-License-Identifier: Apache-2.0
// The lane-level schedules on NVIDIA GPUs with FP8 mma.sync: sm_89, sm_90 and later. On sm_89 and sm_120 the units multiply
// FP8; on sm_90 and sm_100 the same instruction runs through F16 products.
#pragma once

#include <octavo/backends/cuda/common/backend.hpp>
#include <octavo/backends/cuda/simt/machine.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct cuda_simt : simt::passes<nvidia::machine>, cuda_common::block_backend<cuda_simt> {
  static constexpr const char* name() { return "cuda-simt"; }

  /// Empty where the current device has the instruction.
  static text unavailable() {
    return unavailable_unless([](int major, int minor) { return major > 8 || (major == 8 && minor >= 9); },
                              "8.9 or later, which have FP8 products");
  }
  /// Shared memory that a block of the current device may have; 0 without one.
  static int most_shared_bytes() {
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    return cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess ? bytes : 0;
  }
};

}  // namespace backends
OCTAVO_END_NAMESPACE
