// SPDX-License-Identifier: Apache-2.0
// The Blackwell backend (B200, GB200: compile for sm_100a; B300, GB300: for sm_103a; or for the family, 100f).
#pragma once

#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/cuda/common/backend.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

/// The generic loops take a block on each of a B200's 148 multiprocessors.
struct cuda_blackwell : blackwell::passes, cuda_common::block_backend<cuda_blackwell, 148> {
  static constexpr const char* name() { return "cuda-blackwell"; }

  /// A kernel of the schedules. sm_103 has twice the special units of sm_100, and needs no polynomials in their place.
  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    if constexpr (requires { kernel.with_special_units(); })
      if (is([](int major, int minor) { return major == 10 && minor == 3; }))
        return block_backend::launch_blocks(on, kernel.with_special_units());
    return block_backend::launch_blocks(on, kernel);
  }

  /// Empty where a Blackwell GPU of a data centre is the current device.
  static text unavailable() {
    return unavailable_unless([](int major, int) { return major == 10; }, "10.0 (Blackwell)");
  }
};

}  // namespace backends
OCTAVO_END_NAMESPACE
