// SPDX-License-Identifier: Apache-2.0
// The CPU backend's numbers, each with what decided it.
#pragma once

#include <octavo/backends/cpu/target.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

struct cpu_tuning {
  /// Query and key tile: 128, the run over which P and dS share a scale, so that a tile's scale is the contract's.
  static constexpr int tile_q = 128;
  static constexpr int tile_kv = 128;
};

/// Rows of a product's register block, for vectors of that many floats (two of them per row): as many accumulators as
/// the register file holds beside two loads of B and a broadcast of A (16 registers up to AVX2, 32 with AVX-512).
constexpr int block_rows(int floats_per_vector) { return floats_per_vector >= 16 ? 8 : 4; }

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
