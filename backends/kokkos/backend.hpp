// SPDX-License-Identifier: Apache-2.0
// The Kokkos backend: the generic loops on the teams of any execution space.
//
//     using fp8 = octavo::config<octavo::backends::kokkos, octavo::recipe::token>;       the default execution space
//     using fp8 = octavo::config<octavo::backends::kokkos_on<Kokkos::Serial>, ...>;      a space by name
//
// view.hpp has the calls that take Kokkos::View. Kokkos is the caller's to initialise.
#pragma once

#include <octavo/algorithm/passes.hpp>
#include <octavo/backends/kokkos/launch.hpp>
#include <octavo/backends/kokkos/operations.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

template <class ExecutionSpace = Kokkos::DefaultExecutionSpace>
struct kokkos_on : generic_passes, kokkos_detail::operations<ExecutionSpace> {
  using execution_space = ExecutionSpace;
  using queue = kokkos_detail::queue<ExecutionSpace>;
  static constexpr int tile_q = kokkos_detail::tile_q;
  static constexpr int tile_kv = kokkos_detail::tile_kv;
  static constexpr int max_head_dim = 256;

  /// Every recipe but `exact`, which is float64.
  template <class R>
  static constexpr bool computes = !std::is_same_v<R, recipe::exact>;

  /// Tiles cannot shrink to fit: their edge is the run over which P and dS share a scale.
  template <class Config>
  static text refusal(const problem& p) {
    if (!kokkos_detail::running_teams_progress<ExecutionSpace>)
      return text(ExecutionSpace::name()) << " does not promise that running teams make progress while others wait for "
                                             "them, which the order of dQ's sums relies on";
    const kokkos_detail::scratch_plan plan = kokkos_detail::plan_scratch<ExecutionSpace>(p);
    if (plan.fits()) return {};
    return text("a team's tiles take ") << static_cast<long long>(plan.bytes) << " bytes of scratch memory, and "
                                        << ExecutionSpace::name() << " has " << static_cast<long long>(plan.limit);
  }

  static constexpr const char* name() { return "kokkos"; }
  static text unavailable() {
    return Kokkos::is_initialized() ? text() : text("Kokkos is not initialised: call Kokkos::initialize first");
  }
  static text device() {
    return text("Kokkos ") << KOKKOS_VERSION / 10000 << "." << KOKKOS_VERSION / 100 % 100 << "." << KOKKOS_VERSION % 100
                           << ", " << ExecutionSpace::name() << ", concurrency " << ExecutionSpace().concurrency();
  }

  /// Tiles are in the team scratch memory that Kokkos keeps; the workspace holds the tickets.
  static std::size_t scratch_bytes(const problem&) { return sizeof(kokkos_detail::ticket); }
  template <class Kernel>
  static status launch(queue& on, const problem& p, void* scratch, std::int64_t items, const Kernel& kernel) {
    kokkos_detail::launch(on.space, p, scratch, items, kernel);
    return {};
  }
  static status synchronise(queue& on) {
    on.space.fence();
    return {};
  }
};

using kokkos = kokkos_on<>;

static_assert(require_backend<kokkos>::value);

}  // namespace backends
OCTAVO_END_NAMESPACE
