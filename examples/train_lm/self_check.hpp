// SPDX-License-Identifier: Apache-2.0
// The hand-written gradients against finite differences.
#pragma once

#include "arm.hpp"

namespace train_lm {

/// Every block alone, then the whole model with this arm's attention. Prints one line each; whether all agree.
bool self_check(const arm& a);

}  // namespace train_lm
