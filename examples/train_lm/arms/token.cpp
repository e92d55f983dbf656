// SPDX-License-Identifier: Apache-2.0
#include "arms/arm_of.hpp"

train_lm::fp8_arms train_lm::token_arms() { return fp8_arms_of<octavo::recipe::token>(); }
