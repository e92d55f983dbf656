// SPDX-License-Identifier: Apache-2.0
// The Hopper backend (H100, H200). Compile for sm_90a.
#pragma once

#include <octavo/backends/cuda/common/backend.hpp>
#include <octavo/backends/cuda/hopper/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct cuda_hopper : hopper::passes, cuda_common::block_backend<cuda_hopper> {
  static constexpr const char* name() { return "cuda-hopper"; }

  /// Empty where a Hopper GPU is the current device.
  static text unavailable() {
    return unavailable_unless([](int major, int) { return major == 9; }, "9.0 (Hopper)");
  }
};

}  // namespace backends
OCTAVO_END_NAMESPACE
