// SPDX-License-Identifier: Apache-2.0
#include "arms/arm_of.hpp"

train_lm::fp8_arms train_lm::tile_arms() { return fp8_arms_of<octavo::recipe::tile>(); }
