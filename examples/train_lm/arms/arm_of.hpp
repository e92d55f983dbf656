// SPDX-License-Identifier: Apache-2.0
// From an octavo::config to an arm: the whole of this program's contact with a backend.
#pragma once

#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

#include "arms/arms.hpp"

namespace train_lm {

template <class Config>
arm arm_of(const char* name) {
  using namespace octavo;
  using queue = typename Config::backend::queue;  // of one thread: runs are parallel among themselves (jobs.hpp)
  return {
      .name = name,
      .supports = [](const problem& p) { return octavo::supports<Config>(p); },
      .workspace_size = [](const problem& p) { return octavo::workspace_size<Config>(p); },
      .forward =
          [](const problem& p, const forward_inputs& in, const forward_outputs& out, workspace scratch) {
            queue one_thread{.threads = 1};
            return attention_forward<Config>(one_thread, p, in, out, scratch);
          },
      .backward =
          [](const problem& p, const backward_inputs& in, const backward_outputs& out, workspace scratch) {
            queue one_thread{.threads = 1};
            return attention_backward<Config>(one_thread, p, in, out, scratch);
          },
  };
}

/// The FP8 arms of a recipe: configs that differ in nothing but the delta.
template <class Recipe>
fp8_arms fp8_arms_of() {
  using octavo::config, octavo::backends::cpu;
  return {.stale = arm_of<config<cpu, Recipe, octavo::delta::stale>>("fp8 stale"),
          .matched = arm_of<config<cpu, Recipe, octavo::delta::matched>>("fp8 matched"),
          .consistent = arm_of<config<cpu, Recipe, octavo::delta::consistent>>("fp8 consistent")};
}

}  // namespace train_lm
