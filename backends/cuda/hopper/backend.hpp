// SPDX-License-Identifier: Apache-2.0
// The Hopper backend (H100, H200). Compile for sm_90a.
#pragma once

#include <octavo/backends/cuda/common/block_backend.hpp>
#include <octavo/backends/cuda/hopper/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct cuda_hopper : cuda_common::block_backend<cuda_hopper, hopper::passes> {
  static constexpr const char* name() { return "cuda-hopper"; }
  static constexpr const char* architecture() { return "Hopper"; }
  static constexpr int compute_capability = 9;
  static constexpr int multiprocessors = 132;  ///< of an H100 or H200 (SXM)
};

}  // namespace backends
OCTAVO_END_NAMESPACE
