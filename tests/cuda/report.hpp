// SPDX-License-Identifier: Apache-2.0
// The kernels whose registers count, for report.cmake. Nothing here runs.
#pragma once

#include <octavo/algorithm/delta.hpp>
#include <octavo/backends/gpu/launch.hpp>

namespace {

/// An empty kernel, whose name tells the report how much shared memory a launch of Kernel takes.
template <class Kernel, int bytes>
__global__ void shared_bytes_of() {}

struct reported {
  const void *code, *shared;
};
template <class Kernel>
reported report() {
  return {reinterpret_cast<const void*>(&octavo::backends::gpu::run_blocks<Kernel>),
          reinterpret_cast<const void*>(&shared_bytes_of<Kernel, Kernel::shared_bytes>)};
}

/// Of a policy forwards ask only integer_maximum, so that consistent's is matched's, and gradients only reuses_forward_p, so
/// that stale's are matched's.
template <class Schedules, class Recipe, int D>
const reported kernels[] = {report<typename Schedules::template forward<Recipe, octavo::delta::matched, D>>(),
                            report<typename Schedules::template forward<Recipe, octavo::delta::stale, D>>(),
                            report<typename Schedules::template delta_sums<Recipe, D>>(),
                            report<typename Schedules::template dq<Recipe, octavo::delta::matched, D>>(),
                            report<typename Schedules::template dq<Recipe, octavo::delta::consistent, D>>(),
                            report<typename Schedules::template dkv<Recipe, octavo::delta::matched, D>>(),
                            report<typename Schedules::template dkv<Recipe, octavo::delta::consistent, D>>()};
static_assert(octavo::delta::consistent::integer_maximum == octavo::delta::matched::integer_maximum);
static_assert(octavo::delta::stale::reuses_forward_p == octavo::delta::matched::reuses_forward_p);

/// Where it costs little, they are looked at nevertheless.
template <class Schedules, class Recipe, int D>
const reported stale_gradients[] = {report<typename Schedules::template dq<Recipe, octavo::delta::stale, D>>(),
                                    report<typename Schedules::template dkv<Recipe, octavo::delta::stale, D>>()};

}  // namespace
