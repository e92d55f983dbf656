// SPDX-License-Identifier: Apache-2.0
// How a kernel is cut into warps and steps: what a machine tunes.
#pragma once

#include <octavo/config.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Tokens of a tile: the run that `tile` has a scale for, and the rows that a block owns.
inline constexpr int tile_tokens = 128;

/// The kernels that a machine has a plan for.
enum class work {
  forward,     ///< rows own O
  delta_sums,  ///< rows own the two sums of the matched delta
  dq,          ///< rows own dQ
  dkv,         ///< keys own dK and dV
};

/// A block owns tile_tokens rows (of queries, or for dkv of keys); each warp has row_tiles * atom::size of them.
struct schedule {
  int row_tiles = 1;  ///< atoms side by side in a warp: operands fetched once serve so many products
  int step = 64;      ///< tokens of the other side per step: a divisor of tile_tokens, a multiple of the atom's depth
  int stages = 2;     ///< steps of operands in shared memory, at least 2
  int blocks_per_sm = 1;           ///< that registers should leave room for
  bool rows_in_registers = false;  ///< whether a warp keeps its own rows' operands in registers
  int parts = 1;  ///< blocks that share an item's output channels between them, each making S and dP anew
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
