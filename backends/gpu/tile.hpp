// SPDX-License-Identifier: Apache-2.0
// Tiles of a thread block for the generic loops: FP32 matrices and vectors in the block's slice of the caller's
// workspace, which the caches hold. The slow right version: what a schedule of its own is tested against, and what
// computes the problems that no schedule takes.
#pragma once

#include <octavo/backend/concept.hpp>
#include <octavo/backends/gpu/runtime.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

/// Who runs a tile: a block of `threads` threads. Every thread keeps the same count of what is taken.
struct block_context {
  float* memory;
  std::size_t used = 0;

  __device__ explicit block_context(float* slice) : memory(slice) {}
  __device__ float* take(int count) {
    float* const at = memory + used;
    used += (static_cast<std::size_t>(count) + 31) / 32 * 32;
    return at;
  }
  __device__ void reset() { used = 0; }
};

template <int M, int N>
struct accum {
  __device__ accum(block_context& ctx, int m, int n) : rows(m), columns(n), data(ctx.take(m * n)) {}
  int rows, columns;
  float* data;
};

/// A left operand is laid out as [free, contracted], a right one as [contracted, free].
template <class E, side S, image I, int R, int C>
struct operand {
  __device__ operand(block_context& ctx, int r, int c) : rows(r), columns(c), data(ctx.take(r * c)) {}
  static constexpr bool transposed = (S == side::left) == (I == image::columnwise);
  int rows, columns;
  float* data;

  __device__ int free() const { return I == image::rowwise ? rows : columns; }
  __device__ int contracted() const { return I == image::rowwise ? columns : rows; }
  __device__ float& at(int i, int j) { return transposed ? data[j * rows + i] : data[i * columns + j]; }
};

template <int M>
struct row_vector {
  __device__ row_vector(block_context& ctx, int m) : size(m), data(ctx.take(m)) {}
  int size;
  float* data;
  __device__ float at(int i, int) const { return data[i]; }
};
template <int N>
struct col_vector {
  __device__ col_vector(block_context& ctx, int n) : size(n), data(ctx.take(n)) {}
  int size;
  float* data;
  __device__ float at(int, int j) const { return data[j]; }
};

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
