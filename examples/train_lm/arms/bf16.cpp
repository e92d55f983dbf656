// SPDX-License-Identifier: Apache-2.0
#include "arms/arm_of.hpp"

train_lm::arm train_lm::bf16_arm() {
  return arm_of<octavo::config<octavo::backends::cpu, octavo::recipe::bf16, octavo::delta::stale>>("bf16");
}
