// SPDX-License-Identifier: Apache-2.0
// The accumulators of a warp's products: where an element stands, and reductions over the lanes that hold a row between
// them.
#pragma once

#include <octavo/backends/simt/images.hpp>

#include <cmath>
#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Accumulators of row_tiles * size rows x N columns, a lane's share: atoms side by side, then below each other.
template <class M, int row_tiles_, int N>
struct sums_of {
  using atom_layout = image_layout<M>;
  static constexpr int row_tiles = row_tiles_, size = atom_layout::size, sums = atom_layout::sums;
  static constexpr int atoms = N / size;  ///< side by side
  static constexpr int elements = row_tiles * atoms * sums;
  static constexpr int rows = row_tiles * atom_layout::row_slots;  ///< that a lane has elements of
  static_assert(N % size == 0, "a fragment is whole atoms");

  /// Which of the lane's rows element i is of; its column, without the lane's own part.
  OCTAVO_HD static constexpr int row(int i) {
    return i / (atoms * sums) * atom_layout::row_slots + atom_layout::row_slot(i % sums);
  }
  OCTAVO_HD static constexpr int column(int i) {
    return i / sums % atoms * size + atom_layout::column_of_sum(i % sums);
  }
};

/// Where a lane stands in a block whose warps own row_tiles * size rows each.
template <class M, int row_tiles>
struct lane_place {
  using atom_layout = image_layout<M>;
  static constexpr int rows = row_tiles * atom_layout::row_slots, warp_rows = row_tiles * atom_layout::size;

  int warp, lane;
  int first_row;  ///< of the warp in the block
  int lane_row;   ///< of the lane's first row in the block
  int column;     ///< the lane's part of its elements' columns

  OCTAVO_DEVICE static lane_place here() { return of_thread(M::thread_index()); }
  OCTAVO_DEVICE static lane_place of_thread(int thread) {
    const int warp = thread / M::lanes, lane = thread % M::lanes;
    return {warp, lane, warp * warp_rows, warp * warp_rows + atom_layout::row_of_lane(lane),
            atom_layout::column_of_lane(lane)};
  }
  /// The lane's r-th row in the block.
  OCTAVO_DEVICE int row(int r) const {
    return lane_row + r / atom_layout::row_slots * atom_layout::size +
           atom_layout::row_of_slot(r % atom_layout::row_slots);
  }
  /// One lane of those that share a row.
  OCTAVO_DEVICE bool leads_row() const { return (static_cast<unsigned>(lane) & atom_layout::row_lanes) == 0; }
};

/// Elements [first, first + N) of an array.
template <int N, class T, std::size_t size>
OCTAVO_DEVICE T (&part_of(T (&x)[size], int first))[N] {
  return reinterpret_cast<T(&)[N]>(x[first]);
}

template <class M>
OCTAVO_DEVICE float max_over_row(float x) {
  OCTAVO_UNROLL
  for (int bit = 1; bit < M::lanes; bit *= 2)
    if ((image_layout<M>::row_lanes & static_cast<unsigned>(bit)) != 0) x = fmaxf(x, M::shuffle_xor(x, bit));
  return x;
}
template <class M>
OCTAVO_DEVICE float sum_over_row(float x) {
  OCTAVO_UNROLL
  for (int bit = 1; bit < M::lanes; bit *= 2)
    if ((image_layout<M>::row_lanes & static_cast<unsigned>(bit)) != 0) x += M::shuffle_xor(x, bit);
  return x;
}

/// The largest f(i) of each of the lane's rows. Four running maxima a row, so that no comparison waits for the one before.
template <class Shape, class F>
OCTAVO_DEVICE void row_maximum(float (&high)[Shape::rows], F f) {
  constexpr int chains = 4;
  float running[Shape::rows][chains];
  int seen[Shape::rows] = {};
  OCTAVO_UNROLL
  for (int i = 0; i < Shape::elements; ++i) {
    const int row = Shape::row(i), n = seen[row]++;
    running[row][n % chains] = n < chains ? f(i) : fmaxf(running[row][n % chains], f(i));
  }
  OCTAVO_UNROLL
  for (int r = 0; r < Shape::rows; ++r)
    high[r] = fmaxf(fmaxf(running[r][0], running[r][1]), fmaxf(running[r][2], running[r][3]));
}
/// The largest magnitude; a NaN is passed over.
template <class Shape>
OCTAVO_DEVICE void row_amax(const float (&x)[Shape::elements], float (&amax)[Shape::rows]) {
  row_maximum<Shape>(amax, [&](int i) { return fabsf(x[i]); });
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
