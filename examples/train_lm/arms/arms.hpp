// SPDX-License-Identifier: Apache-2.0
// The compiled configs, by recipe. Each function has a file of its own: attention is long to compile, recipes compile
// side by side, and nothing else of this program includes a backend.
#pragma once

#include "arm.hpp"

namespace train_lm {

/// One arm per delta policy.
struct fp8_arms {
  arm stale, matched, consistent;
};

arm bf16_arm();  ///< with delta = dO . O: what BF16 FlashAttention computes
fp8_arms token_arms();
fp8_arms tile_arms();
fp8_arms mx32_arms();

}  // namespace train_lm
