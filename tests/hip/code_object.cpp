// SPDX-License-Identifier: Apache-2.0
// The kernels of recipe OCTAVO_RECIPE at d OCTAVO_D for gfx942, for code_objects.cmake. Nothing here runs.
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/simt/passes.hpp>

#include <type_traits>

using namespace octavo;
using namespace octavo::backends;

namespace {

using M = cdna3::machine;
using R = recipe::OCTAVO_RECIPE;
using e5m2_R = recipe::e5m2_gradients<R>;
constexpr int D = OCTAVO_D;

/// Kernel's code, if it is for so many blocks of four waves at once on a compute unit: those that backends/hip/README.md
/// plans.
template <class Kernel, int blocks>
struct planned : std::type_identity<Kernel> {
  static_assert(Kernel::threads == 256 && Kernel::blocks_per_sm == blocks);
  static_assert(blocks * Kernel::shared_bytes <= M::shared_bytes, "shared memory does not hold the planned blocks");
};

template <class Delta>
using forward = typename planned<simt::forward_kernel<M, R, Delta, D>, 2>::type;
template <class Recipe>
using delta_sums = typename planned<simt::delta_sums_kernel<M, Recipe, D>, 2>::type;
template <class Recipe, class Delta>
using dq = typename planned<simt::dq_kernel<M, Recipe, Delta, D>, 2>::type;
template <class Recipe, class Delta>
using dkv = typename planned<simt::dkv_kernel<M, Recipe, Delta, D>, 1>::type;
template <class E>
using quantise = typename planned<simt::quantise_kernel<M, R, E, D>, D <= 64 ? 4 : 2>::type;

}  // namespace

// Of a policy forwards ask only integer_maximum, so that consistent's is matched's, and gradients only reuses_forward_p, so
// that stale's are matched's.
static_assert(delta::consistent::integer_maximum == delta::matched::integer_maximum);
static_assert(delta::stale::reuses_forward_p == delta::matched::reuses_forward_p);

template <class Kernel>
using argument = const Kernel;
#define OCTAVO_CODE_OF(...) template __global__ void gpu::run_blocks<__VA_ARGS__>(argument<__VA_ARGS__>)
OCTAVO_CODE_OF(forward<delta::matched>);
OCTAVO_CODE_OF(forward<delta::stale>);
OCTAVO_CODE_OF(delta_sums<R>);
OCTAVO_CODE_OF(dq<R, delta::matched>);
OCTAVO_CODE_OF(dq<R, delta::consistent>);
OCTAVO_CODE_OF(dkv<R, delta::matched>);
OCTAVO_CODE_OF(dkv<R, delta::consistent>);
OCTAVO_CODE_OF(quantise<e4m3>);
// E5M2 gradients have instructions of their own.
OCTAVO_CODE_OF(delta_sums<e5m2_R>);
OCTAVO_CODE_OF(dq<e5m2_R, delta::matched>);
OCTAVO_CODE_OF(dkv<e5m2_R, delta::matched>);
OCTAVO_CODE_OF(quantise<e5m2>);
