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

/// Where a warp keeps its own rows of a left operand (owned_rows.hpp).
enum class own_rows { in_shared, in_registers, converted_in_shared, converted_in_local };

/// A block owns tile_tokens rows (of queries, or for dkv of keys); each warp has row_tiles * atom::size of them.
struct schedule {
  int row_tiles = 1;  ///< atoms side by side in a warp: operands fetched once serve so many products
  int step = 64;      ///< tokens of the other side per step: a divisor of tile_tokens, a multiple of the atom's depth
  int stages = 2;     ///< steps of operands in shared memory, at least 2
  int blocks_per_sm = 1;           ///< that registers should leave room for
  bool rows_in_registers = false;  ///< whether a warp keeps its own rows' operands in registers
  int parts = 1;        ///< blocks that share an item's output channels between them, each making S and dP anew
  bool paired = false;  ///< dkv: whether two warps share keys, one with S and dV, the other with dP and dK
  /// Whether they are kept as the unit multiplies them: an operand that takes no scales, converted once. With
  /// rows_in_registers in the lane's local memory, since registers do not hold twice as much.
  bool rows_converted = false;

  constexpr own_rows own(bool scaled) const {
    if (rows_converted && !scaled)
      return rows_in_registers ? own_rows::converted_in_local : own_rows::converted_in_shared;
    return rows_in_registers ? own_rows::in_registers : own_rows::in_shared;
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
