// SPDX-License-Identifier: Apache-2.0
// Kernels of blocks under the checker: no race, nothing read before it is written, nothing out of bounds; and the same
// bits whatever the order of threads.
#pragma once

#include <octavo/backends/cuda/common/block_passes.hpp>

#include <cstdint>

#include "sim_checked/small_problem.hpp"

namespace sim_checked {

/// At one d alone: the passes of the backend would compile both.
template <class Config, class Schedules, int D>
struct block_passes_of {
  using forward = octavo::backends::cuda_common::block_forward<Config, Schedules, D>;
  using backward = octavo::backends::cuda_common::block_backward<Config, Schedules, D>;
};

/// One head under a causal mask; the extents are no multiples of tiles.
inline small_problem causal_head(std::int64_t d, bool with_nan) {
  octavo::problem p;
  p.s_q = 200, p.s_kv = 264, p.d_qk = p.d_v = d;
  p.mask.causal = octavo::causal_mask::bottom_right;
  p.deterministic = true;
  return {p, with_nan};
}
/// Documents of odd lengths, one of no queries, of two query heads that share keys; rows behind the last one.
inline small_problem packed_group(std::int64_t d, bool with_nan) {
  octavo::problem p;
  p.b = 4, p.h_q = 2, p.h_kv = 1, p.s_q = 131, p.s_kv = 137, p.d_qk = p.d_v = d;
  p.mask.causal = octavo::causal_mask::top_left;
  p.packed = true, p.total_q = 160, p.total_kv = 180;
  p.deterministic = true;
  return {p, with_nan, {0, 131, 131, 132, 157}, {0, 137, 141, 150, 176}};
}

/// More tiles of keys (of queries) than a ring has stages, at most 6 (4) at d 64 and 4 (2) at d 128 on Blackwell: who fills
/// it waits until a stage is empty again.
inline small_problem long_row(std::int64_t d, bool with_nan) {
  octavo::problem p;
  p.s_q = 40, p.s_kv = d <= 64 ? 800 : 520, p.d_qk = p.d_v = d;
  p.deterministic = true;
  return {p, with_nan};
}
inline small_problem long_column(std::int64_t d, bool with_nan) {
  octavo::problem p;
  p.s_q = d <= 64 ? 520 : 300, p.s_kv = 40, p.d_qk = p.d_v = d;
  p.deterministic = true;
  return {p, with_nan};
}

/// Runs Schedules on what make(d, with_nan) gives under several seeds, with finite inputs and with a NaN in each.
template <class Backend, class Recipe, class Delta, class Schedules, int D = 64>
void check_schedules(small_problem (*make)(std::int64_t d, bool with_nan)) {
  using config = octavo::config<Backend, Recipe, Delta>;
  for (const bool with_nan : {false, true})
    check_seeds<block_passes_of<config, Schedules, D>, Backend>([&] { return make(D, with_nan); }, 3);
}

}  // namespace sim_checked
