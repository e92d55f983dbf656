// SPDX-License-Identifier: Apache-2.0
// Tiles of the CPU backend: FP32 matrices and vectors in a worker's slice of the caller's workspace.
#pragma once

#include <octavo/backend/concept.hpp>
#include <octavo/backends/cpu/mma.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

/// Who runs a tile: one thread, with its slice of the workspace. Tiles are taken from it and all given back at once.
class context {
 public:
  context(std::byte* memory, std::size_t bytes) : memory_(memory), bytes_(bytes) {}

  float* take(int count) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(float) + 63) / 64 * 64;
    if (used_ > bytes_) {
      // scratch_bytes must cover every kernel: to go on would write into another worker's tiles.
      std::fprintf(stderr, "octavo cpu: a kernel needs more tile memory than scratch_bytes counted\n");
      std::abort();
    }
    return reinterpret_cast<float*>(memory_ + at);
  }
  void reset() { used_ = 0; }

 private:
  std::byte* memory_;
  std::size_t bytes_, used_ = 0;
};

/// rows x columns FP32, row-major.
template <int M, int N>
struct accum {
  accum(context& ctx, int m, int n) : rows(m), columns(n), data(ctx.take(m * n)) {}
  int rows, columns;
  float* data;
  float* row(int i) { return data + static_cast<std::ptrdiff_t>(i) * columns; }
  const float* row(int i) const { return data + static_cast<std::ptrdiff_t>(i) * columns; }
};

/// The operand's elements as floats (payloads are small: FP32 holds them and their products exactly), laid out for mma:
/// a left operand as [free, contracted], a right one as [contracted, free].
template <class E, side S, image I, int R, int C>
struct operand {
  /// tokens (or queries) x channels (or keys)
  operand(context& ctx, int r, int c) : rows(r), columns(c), data(ctx.take(r * c)) {}
  static constexpr bool transposed = (S == side::left) == (I == image::columnwise);
  int rows, columns;
  float* data;
  bool finite = true;  ///< false only of a right operand that holds an infinity or a NaN

  matrix layout() const { return {data, transposed ? rows : columns}; }
  int free() const { return I == image::rowwise ? rows : columns; }
  int contracted() const { return I == image::rowwise ? columns : rows; }
  float& at(int i, int j) { return transposed ? data[j * rows + i] : data[i * columns + j]; }
};

template <int M>
struct row_vector {
  row_vector(context& ctx, int m) : size(m), data(ctx.take(m)) {}
  int size;
  float* data;
  float at(int i, int) const { return data[i]; }
};
template <int N>
struct col_vector {
  col_vector(context& ctx, int n) : size(n), data(ctx.take(n)) {}
  int size;
  float* data;
  float at(int, int j) const { return data[j]; }
};

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
