// SPDX-License-Identifier: Apache-2.0
// The Blackwell backend (B200, GB200: compile for sm_100a; B300, GB300: for sm_103a).
#pragma once

#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/cuda/common/block_backend.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct cuda_blackwell : cuda_common::block_backend<cuda_blackwell, blackwell::passes> {
  static constexpr const char* name() { return "cuda-blackwell"; }
  static constexpr const char* architecture() { return "Blackwell"; }
  static constexpr int compute_capability = 10;
  static constexpr int multiprocessors = 148;  ///< of a B200
};

}  // namespace backends
OCTAVO_END_NAMESPACE
