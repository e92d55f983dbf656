// SPDX-License-Identifier: Apache-2.0
// The kernels of the lanes on a machine, as report.hpp takes them.
#pragma once

#include <octavo/backends/simt/delta_sums.hpp>
#include <octavo/backends/simt/dkv.hpp>
#include <octavo/backends/simt/dq.hpp>
#include <octavo/backends/simt/forward.hpp>

#include "report.hpp"

namespace {

namespace simt = octavo::backends::simt;

template <class M>
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
