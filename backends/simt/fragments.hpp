// SPDX-License-Identifier: Apache-2.0
// The accumulators of a warp's products: where an element stands, whole contractions, and reductions over the lanes that
// hold a row between them.
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

  OCTAVO_DEVICE static lane_place here() {
    const int thread = M::thread_index(), warp = thread / M::lanes, lane = thread % M::lanes;
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

/// A lane's words of operand block `block` of an image in shared memory.
template <class M, int words>
OCTAVO_DEVICE void load_block(const std::uint8_t* image, int block, int lane, std::uint32_t (&to)[words]) {
  using at = image_layout<M>;
  static_assert(words == at::words);
  const std::uint8_t* from = image + block * at::block_bytes + lane * at::piece_bytes;
  OCTAVO_UNROLL
  for (int piece = 0; piece < at::pieces; ++piece)
    __builtin_memcpy(to + piece * at::piece_words,
                     __builtin_assume_aligned(from + piece * M::lanes * at::piece_bytes, at::piece_bytes),
                     at::piece_bytes);
}

/// d = L R^T over D channels of row images: L the warp's own rows (owned_rows.hpp), R a step's, in shared memory.
template <class M, class A, class Shape, int D, class Left>
OCTAVO_DEVICE void multiply_rows(float (&d)[Shape::elements], const Left& left, const std::uint8_t* right, int lane) {
  constexpr int depths = D / A::depth, words = A::words, row_tiles = Shape::row_tiles;
  OCTAVO_UNROLL
  for (float& x : d) x = 0;
  OCTAVO_UNROLL
  for (int k = 0; k < depths; ++k) {
    std::uint32_t l[row_tiles][words];
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) left.load(m, k, l[m]);
    OCTAVO_UNROLL
    for (int n = 0; n < Shape::atoms; ++n) {
      std::uint32_t r[words];
      load_block<M>(right, n * depths + k, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m) A::mma(part_of<A::sums>(d, (m * Shape::atoms + n) * A::sums), l[m], r);
    }
  }
}

/// The left operand of a product over N tokens, in registers.
template <class M, int row_tiles, int N>
struct packed_rows {
  using atom_layout = image_layout<M>;
  using shape = sums_of<M, row_tiles, N>;
  static constexpr int depths = N / atom_layout::depth;
  static_assert(N % atom_layout::depth == 0, "a step is whole depths of the atom");
  std::uint32_t words[row_tiles][depths][atom_layout::words];

  /// The element of a fragment that became byte `byte` of word w.
  OCTAVO_HD static constexpr int element(int m, int k, int w, int byte) {
    constexpr int per_depth = atom_layout::depth / atom_layout::size * atom_layout::sums;
    return m * (N / atom_layout::size * atom_layout::sums) + k * per_depth + atom_layout::sum_of_byte(w, byte);
  }
  /// x rounded to E.
  template <class E>
  OCTAVO_DEVICE void pack(const float (&x)[shape::elements]) {
    each_word([&](int m, int k, int w) {
      words[m][k][w] = M::template pack<E>(x[element(m, k, w, 0)], x[element(m, k, w, 1)], x[element(m, k, w, 2)],
                                           x[element(m, k, w, 3)]);
    });
  }
  template <class F>
  OCTAVO_DEVICE static void each_word(F f) {
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) {
      OCTAVO_UNROLL
      for (int k = 0; k < depths; ++k) {
        OCTAVO_UNROLL
        for (int w = 0; w < atom_layout::words; ++w) f(m, k, w);
      }
    }
  }
};

/// Calls add(part, c) for the products of packed rows with the atoms [c * size, (c + 1) * size) of channels of a column
/// image in shared memory, one after another: part[row_tiles * sums], started from zero.
template <class M, class A, int row_tiles, int N, int D, int channels, class Add>
OCTAVO_DEVICE void multiply_columns(const packed_rows<M, row_tiles, N>& left, const std::uint8_t* columns,
                                    int first_channel, int lane, Add add) {
  using packed = packed_rows<M, row_tiles, N>;
  OCTAVO_UNROLL
  for (int c = 0; c < channels / A::size; ++c) {
    float part[row_tiles * A::sums];
    OCTAVO_UNROLL
    for (float& x : part) x = 0;
    OCTAVO_UNROLL
    for (int k = 0; k < packed::depths; ++k) {
      std::uint32_t r[A::words];
      load_block<M>(columns, k * (D / A::size) + first_channel / A::size + c, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m) A::mma(part_of<A::sums>(part, m * A::sums), left.words[m][k], r);
    }
    add(part, c);
  }
}

/// The same products, added to d: channels of a fragment, which units of long sums go on from.
template <class M, class A, int row_tiles, int N, class Shape>
OCTAVO_DEVICE void add_columns(float (&d)[Shape::elements], const packed_rows<M, row_tiles, N>& left,
                               const std::uint8_t* columns, int lane) {
  using packed = packed_rows<M, row_tiles, N>;
  OCTAVO_UNROLL
  for (int c = 0; c < Shape::atoms; ++c) {
    OCTAVO_UNROLL
    for (int k = 0; k < packed::depths; ++k) {
      std::uint32_t r[A::words];
      load_block<M>(columns, k * Shape::atoms + c, lane, r);
      OCTAVO_UNROLL
      for (int m = 0; m < row_tiles; ++m)
        A::mma(part_of<A::sums>(d, (m * Shape::atoms + c) * A::sums), left.words[m][k], r);
    }
  }
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
