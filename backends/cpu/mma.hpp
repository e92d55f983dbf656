// SPDX-License-Identifier: Apache-2.0
// The only product: C += A B on row-major FP32 tiles. Operands were laid out at load time so that S, O, dQ, dK and dV
// all take this one form.
#pragma once

#include <octavo/backends/cpu/simd.hpp>
#include <octavo/backends/cpu/tuning.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

/// A row-major tile of floats inside a larger one.
struct matrix {
  float* data;
  int stride;
};

/// Rows x (2 * width) of C. One accumulator per element, summed in the order of k: the result of an element does not
/// depend on how the tile was blocked, which the passes that must see the same S rely on.
template <int Rows>
inline void mma_block(float* c, int ldc, const float* a, int lda, const float* b, int ldb, int depth) {
  floats sum[Rows][2];
  for (int r = 0; r < Rows; ++r) {
    sum[r][0] = load(c + r * ldc);
    sum[r][1] = load(c + r * ldc + width);
  }
  for (int k = 0; k < depth; ++k) {
    const floats b0 = load(b + k * ldb), b1 = load(b + k * ldb + width);
    for (int r = 0; r < Rows; ++r) {
      const floats x(a[r * lda + k]);
      sum[r][0] += x * b0;
      sum[r][1] += x * b1;
    }
  }
  for (int r = 0; r < Rows; ++r) {
    store(sum[r][0], c + r * ldc);
    store(sum[r][1], c + r * ldc + width);
  }
}

/// C[rows, columns] += A[rows, depth] B[depth, columns]; columns is a multiple of 32.
[[gnu::noinline]] inline void mma(matrix c, matrix a, matrix b, int rows, int columns, int depth) {
  constexpr int block = block_rows(width), wide = 2 * width;
  static_assert(32 % wide == 0, "tiles are whole blocks of 32 columns");
  for (int j = 0; j < columns; j += wide) {
    int i = 0;
    for (; i + block <= rows; i += block)
      mma_block<block>(c.data + i * c.stride + j, c.stride, a.data + i * a.stride, a.stride, b.data + j, b.stride,
                       depth);
    for (; i < rows; ++i)
      mma_block<1>(c.data + i * c.stride + j, c.stride, a.data + i * a.stride, a.stride, b.data + j, b.stride, depth);
  }
}

/// The same where B holds infinities or NaNs: a factor 0 of A (a pair behind a mask) carries nothing.
[[gnu::noinline]] inline void mma_skipping_zeros(matrix c, matrix a, matrix b, int rows, int columns, int depth) {
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < depth; ++k)
      if (const float x = a.data[i * a.stride + k]; x != 0)
        for (int j = 0; j < columns; ++j) c.data[i * c.stride + j] += x * b.data[k * b.stride + j];
}

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
