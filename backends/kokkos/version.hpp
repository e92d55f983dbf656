// SPDX-License-Identifier: Apache-2.0
// Kokkos, from 3.4 on, and everything that differs between its versions or between the compilers it supports.
#pragma once

#include <octavo/config.hpp>

#include <Kokkos_Core.hpp>
#include <type_traits>

#if KOKKOS_VERSION < 30400
#error "octavo: the kokkos backend needs Kokkos 3.4 or newer"
#endif

// Before a loop over a tile's columns: no iteration reads what another writes (tiles do not overlap), which compilers
// cannot see through the functions that the loop is handed. Kokkos' own vector ranges say so to Intel's compiler only.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define OCTAVO_KOKKOS_INDEPENDENT
#elif defined(__clang__)
#define OCTAVO_KOKKOS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define OCTAVO_KOKKOS_INDEPENDENT _Pragma("GCC ivdep")
#else
#define OCTAVO_KOKKOS_INDEPENDENT
#endif

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// Whether a team that waits for another running one leaves it the means to go on: threads of a host do, and so do the
/// resident blocks of CUDA (from compute capability 7.0) and HIP. Nobody else promises it.
template <class Space>
inline constexpr bool running_teams_progress = std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>;
#if defined(KOKKOS_ENABLE_CUDA)
template <>
inline constexpr bool running_teams_progress<Kokkos::Cuda> = true;
#endif
#if defined(KOKKOS_ENABLE_HIP)
#if KOKKOS_VERSION < 40000
template <>
inline constexpr bool running_teams_progress<Kokkos::Experimental::HIP> = true;
#else
template <>
inline constexpr bool running_teams_progress<Kokkos::HIP> = true;
#endif
#endif

/// For programs that have no command line for Kokkos: its defaults and its environment variables, and no advice on
/// standard error.
inline void initialise_quietly() {
#if KOKKOS_VERSION < 30700
  Kokkos::InitArguments how;
  how.disable_warnings = true;
#else
  const auto how = Kokkos::InitializationSettings().set_disable_warnings(true);
#endif
  Kokkos::initialize(how);
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
