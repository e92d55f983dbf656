// SPDX-License-Identifier: Apache-2.0
// mx32 on the lanes, over the block-scaled products of sm_120a. d 64 alone, to be quick.
#include <octavo/backends/cuda/simt/scaled_machine.hpp>
#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/forward.hpp>

#include "report.hpp"

using namespace octavo;
using namespace octavo::backends;
using M = nvidia::scaled_machine;

namespace {

struct schedules {
  template <class Recipe, class Delta, int D>
  using forward = simt::forward_kernel<M, Recipe, Delta, D>;
  template <class Recipe, int D>
  using delta_sums = simt::delta_sums_kernel<M, Recipe, D>;
  template <class Recipe, class Delta, int D>
  using dq = simt::dq_kernel<M, Recipe, Delta, D>;
  template <class Recipe, class Delta, int D>
  using dkv = simt::dkv_kernel<M, Recipe, Delta, D>;
};

}  // namespace

extern const reported* const of_every_shape[];
const reported* const of_every_shape[] = {kernels<schedules, recipe::mx32, 64>};
