// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cuda/simt/machine.hpp>
#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/forward.hpp>

#include "report.hpp"

using namespace octavo;
using namespace octavo::backends;
using M = nvidia::machine;

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
const reported* const of_every_shape[] = {kernels<schedules, recipe::tile, 64>, kernels<schedules, recipe::tile, 128>,
                                          kernels<schedules, recipe::token, 64>,
                                          kernels<schedules, recipe::token, 128>};
