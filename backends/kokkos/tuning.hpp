// SPDX-License-Identifier: Apache-2.0
// The numbers of the Kokkos backend, each with what decided it, for the two kinds of execution spaces: those whose team
// is one CPU thread with vector units, and those whose team is many threads of a device.
#pragma once

#include <octavo/backends/kokkos/version.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

template <class Space>
inline constexpr bool on_host = std::is_same_v<typename Space::memory_space, Kokkos::HostSpace>;

/// Query and key tile: 128, the run over which P and dS share a scale, so that a tile's scale is the contract's.
inline constexpr int tile_q = 128;
inline constexpr int tile_kv = 128;

/// Floats of the target's vector registers.
#if defined(__AVX512F__)
inline constexpr int host_lanes = 16;
#elif defined(__AVX__)
inline constexpr int host_lanes = 8;
#else
inline constexpr int host_lanes = 4;
#endif

template <class Space, bool = on_host<Space>>
struct tuning {
  /// A host team is one thread: tiles are large, and there are more of them than cores.
  static constexpr int vector_length = 1;
  /// A product's register block: two vectors wide and as many rows as leave registers for two loads and a broadcast.
  /// (g++ 12, Zen 5, 128 x 128 x 64: 113 GFLOP/s with AVX-512, 92 with AVX2; 2026-11-30.)
  static constexpr int lanes = host_lanes, block_vectors = 2, block_rows = host_lanes == 16 ? 8 : 4;
  /// Edge of the squares in which tiles are loaded, quantised and transposed: rows of a square fill cache lines.
  static constexpr int square = 16;
};
template <class Space>
struct tuning<Space, false> {
  static constexpr int vector_length = 32;  ///< a warp; half a wavefront. Not measured.
  static constexpr int lanes = 1, block_vectors = 4, block_rows = 4;
  static constexpr int square = 1;  ///< neighbouring threads take neighbouring elements
};

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
