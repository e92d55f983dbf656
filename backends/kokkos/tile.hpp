// SPDX-License-Identifier: Apache-2.0
// Tiles: FP32 matrices and vectors in a team's scratch memory.
#pragma once

#include <octavo/algorithm/mask.hpp>
#include <octavo/backend/concept.hpp>
#include <octavo/backends/kokkos/team.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// rows x columns FP32, row-major.
template <class Space, int M, int N>
struct accum {
  KOKKOS_FUNCTION accum(context<Space>& c, int m, int n) : rows(m), columns(n), data(c.take(m * n)) {}
  int rows, columns;
  float* data;
  KOKKOS_FUNCTION float* row(int i) const { return data + static_cast<std::ptrdiff_t>(i) * columns; }
};

/// The operand's elements as floats (payloads are small: FP32 holds them and their products exactly), laid out for mma:
/// a left operand as [free, contracted], a right one as [contracted, free].
template <class Space, class E, side S, image I, int R, int C>
struct operand {
  /// tokens (or queries) x channels (or keys)
  KOKKOS_FUNCTION operand(context<Space>& c, int r, int n) : rows(r), columns(n), data(c.take(r * n)) {}
  static constexpr bool transposed = (S == side::left) == (I == image::columnwise);
  int rows, columns;
  float* data;
  bool finite = true;  ///< false only of a right operand that holds an infinity or a NaN

  KOKKOS_FUNCTION int stride() const { return transposed ? rows : columns; }
  KOKKOS_FUNCTION int contracted() const { return I == image::rowwise ? columns : rows; }
  KOKKOS_FUNCTION float& at(int i, int j) const { return transposed ? data[j * rows + i] : data[i * columns + j]; }

  /// Puts a square of elements in its place, along the rows of the layout.
  template <int Edge>
  KOKKOS_FUNCTION void put(int i0, int j0, const float (&square)[Edge][Edge]) const {
    for (int a = 0; a < Edge; ++a)
      for (int b = 0; b < Edge; ++b)
        if constexpr (transposed)
          at(i0 + b, j0 + a) = square[b][a];
        else
          at(i0 + a, j0 + b) = square[a][b];
  }
};

template <class Space, int M>
struct row_vector {
  KOKKOS_FUNCTION row_vector(context<Space>& c, int m) : size(m), data(c.take(m)) {}
  int size;
  float* data;
  KOKKOS_FUNCTION float at(int i, int) const { return data[i]; }
};
template <class Space, int N>
struct col_vector {
  KOKKOS_FUNCTION col_vector(context<Space>& c, int n) : size(n), data(c.take(n)) {}
  int size;
  float* data;
  KOKKOS_FUNCTION float at(int, int j) const { return data[j]; }
};

/// Scratch memory of one team: the tiles of the backward, the largest kernel.
inline std::size_t tile_bytes(const problem& p) {
  const std::int64_t d = p.d_qk > p.d_v ? p.d_qk : p.d_v;
  const std::int64_t m = tile_extent(p.packed ? p.total_q : p.s_q, tile_q);
  const std::int64_t n = tile_extent(p.packed ? p.total_kv : p.s_kv, tile_kv);
  // Five tiles of queries x channels, seven of keys x channels, six of scores; every extent is a multiple of 32, so a
  // tile fills its cache lines. At most sixteen vectors.
  return static_cast<std::size_t>((5 * m + 7 * n) * d + 6 * m * n + 16 * (m + n)) * sizeof(float);
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
