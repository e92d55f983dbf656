// SPDX-License-Identifier: Apache-2.0
// The products of a warp: over the channels of two row images, and over a step's tokens.
#pragma once

#include <octavo/backends/simt/packed_rows.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// d = L R^T over D channels of row images: L the warp's own rows (owned_rows.hpp), R a step's, in shared memory.
template <class M, bool scaled, class A, class Shape, int D, class Left>
OCTAVO_DEVICE void multiply_rows(float (&d)[Shape::elements], const Left& left, const std::uint8_t* right, int lane) {
  constexpr int depths = D / A::depth, row_tiles = Shape::row_tiles;
  OCTAVO_UNROLL
  for (float& x : d) x = 0;
  OCTAVO_UNROLL
  for (int k = 0; k < depths; ++k) {
    typename Left::operand l[row_tiles];
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) left.load(m, k, l[m]);
    OCTAVO_UNROLL
    for (int n = 0; n < Shape::atoms; ++n) {
      lane_operand<M, scaled> r;
      load_block(right, n * depths + k, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m) multiply<A>(part_of<A::sums>(d, (m * Shape::atoms + n) * A::sums), l[m], r);
    }
  }
}

/// Calls add(part, c) for the products of packed rows with the atoms [c * size, (c + 1) * size) of channels of a column
/// image in shared memory, one after another: part[row_tiles * sums], started from zero.
template <class A, int D, int channels, class M, int row_tiles, int N, bool scaled, class Add>
OCTAVO_DEVICE void multiply_columns(const packed_rows<M, row_tiles, N, scaled>& left, const std::uint8_t* columns,
                                    int first_channel, int lane, Add add) {
  OCTAVO_UNROLL
  for (int c = 0; c < channels / A::size; ++c) {
    float part[row_tiles * A::sums];
    OCTAVO_UNROLL
    for (float& x : part) x = 0;
    OCTAVO_UNROLL
    for (int k = 0; k < left.depths; ++k) {
      lane_operand<M, scaled> r;
      load_block(columns, k * (D / A::size) + first_channel / A::size + c, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m) multiply<A>(part_of<A::sums>(part, m * A::sums), left.of[m][k], r);
    }
    add(part, c);
  }
}

/// The same products, added to d: channels of a fragment, which units of long sums go on from.
template <class A, class Shape, class M, int row_tiles, int N, bool scaled>
OCTAVO_DEVICE void add_columns(float (&d)[Shape::elements], const packed_rows<M, row_tiles, N, scaled>& left,
                               const std::uint8_t* columns, int lane) {
  OCTAVO_UNROLL
  for (int c = 0; c < Shape::atoms; ++c) {
    OCTAVO_UNROLL
    for (int k = 0; k < left.depths; ++k) {
      lane_operand<M, scaled> r;
      load_block(columns, k * Shape::atoms + c, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m)
        multiply<A>(part_of<A::sums>(d, (m * Shape::atoms + c) * A::sums), left.of[m][k], r);
    }
  }
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
