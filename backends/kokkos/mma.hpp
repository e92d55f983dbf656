// SPDX-License-Identifier: Apache-2.0
// The only product: C += A B on row-major FP32 tiles. Operands were laid out when they were loaded, so that S, O, dQ,
// dK and dV all take this one form.
#pragma once

#include <octavo/backends/kokkos/lanes.hpp>
#include <octavo/backends/kokkos/team.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// A row-major tile of floats inside a larger one.
struct matrix {
  float* data;
  int stride;
  KOKKOS_FUNCTION matrix at(int i, int j) const { return {data + i * stride + j, stride}; }
};

/// A block of C that fits into registers: Rows x (Vectors * Lanes). One accumulator per element, summed in the order of
/// k: no bit of an element depends on the blocking, which the passes that must see the same S rely on.
template <int Rows, int Vectors, int Lanes>
KOKKOS_FUNCTION void mma_block(matrix c, matrix a, matrix b, int depth) {
  using vector = typename lanes_of<Lanes>::type;
  vector sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) sum[r][v] = load_lanes<Lanes>(c.at(r, v * Lanes).data);
  for (int k = 0; k < depth; ++k) {
    vector row[Vectors];
    for (int v = 0; v < Vectors; ++v) row[v] = load_lanes<Lanes>(b.at(k, v * Lanes).data);
    for (int r = 0; r < Rows; ++r) {
      const float x = a.data[r * a.stride + k];
      for (int v = 0; v < Vectors; ++v) sum[r][v] += x * row[v];
    }
  }
  for (int r = 0; r < Rows; ++r)
    for (int v = 0; v < Vectors; ++v) store_lanes(c.at(r, v * Lanes).data, sum[r][v]);
}

/// C[rows, columns] += A[rows, depth] B[depth, columns]; rows and columns are multiples of 32.
template <class Space>
KOKKOS_FUNCTION void multiply(context<Space>& ctx, matrix c, matrix a, matrix b, int rows, int columns, int depth) {
  using t = tuning<Space>;
  constexpr int tall = t::block_rows, wide = t::block_vectors * t::lanes;
  static_assert(32 % tall == 0 && 32 % wide == 0, "tiles are whole blocks of 32 x 32");
  const int down = rows / tall;
  // Down the columns of blocks, so that a strip of B stays in the nearest cache.
  for_each(ctx, down * (columns / wide), [&](int n) {
    const int i = n % down * tall, j = n / down * wide;
    mma_block<tall, t::block_vectors, t::lanes>(c.at(i, j), a.at(i, 0), b.at(0, j), depth);
  });
}

/// The same where B holds infinities or NaNs: a factor 0 of A (a pair behind a mask) carries nothing.
template <class Space>
KOKKOS_FUNCTION void multiply_skipping_zeros(context<Space>& ctx, matrix c, matrix a, matrix b, int rows, int columns,
                                             int depth) {
  constexpr int wide = 32;
  const int across = columns / wide;
  for_each(ctx, rows * across, [&](int n) {
    const int i = n / across, j0 = n % across * wide;
    for (int k = 0; k < depth; ++k)
      if (const float x = a.at(i, k).data[0]; x != 0)
        for (int j = 0; j < wide; ++j) c.at(i, j0 + j).data[0] += x * b.at(k, j0 + j).data[0];
  });
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
