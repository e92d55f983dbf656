// SPDX-License-Identifier: Apache-2.0
// Kernels that compute one product of a golden file, D = C + A B^T in steps of 32 elements of K. They run on the devices
// and, to be sure of them before, on the simulator.
#pragma once

#include <octavo/backends/cuda/ptx/copy.hpp>
#include <octavo/backends/cuda/ptx/tcgen05.hpp>
#include <octavo/backends/cuda/ptx/wgmma.hpp>
#include <octavo/scaling/swizzle.hpp>

#include <cstdint>

namespace golden {

namespace ptx = octavo::backends::ptx;

/// Where byte k of a row stands in chunks of 16 bytes along K of all rows, as descriptors without swizzle want it.
OCTAVO_DEVICE int chunked(int rows, int row, int k) { return (k / 16 * rows + row) * 16 + k % 16; }

/// wgmma: 64 rows, one warpgroup.
template <int columns>
struct wgmma_product {
  static constexpr int threads = 128, most_steps = 4, shared_bytes = (64 + columns) * 32 * most_steps;
  static constexpr int blocks_per_sm = 1;
  const std::uint8_t *a, *b;  ///< [64][32 steps], [columns][32 steps]
  const float* c;             ///< [64][columns], as d
  float* d;
  int steps;

  std::int64_t blocks() const { return 1; }

  OCTAVO_DEVICE void operator()() const {
    char* shared = ptx::shared_memory();
    const int t = ptx::thread_index(), depth = 32 * steps;
    char* of_b = shared + 64 * depth;
    for (int i = t; i < 64 * depth; i += threads) shared[chunked(64, i / depth, i % depth)] = static_cast<char>(a[i]);
    for (int i = t; i < columns * depth; i += threads)
      of_b[chunked(columns, i / depth, i % depth)] = static_cast<char>(b[i]);
    ptx::fence_async();
    ptx::sync_block();
    float x[columns / 2];
    OCTAVO_UNROLL
    for (int i = 0; i < columns / 2; ++i) x[i] = c[place(t, i)];
    for (int s = 0; s < steps; ++s) {
      ptx::wgmma_fence();
      ptx::wgmma(x, ptx::matrix::at(shared, 64).along_k(2 * s), ptx::matrix::at(of_b, columns).along_k(2 * s), true);
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
    ptx::wgmma_touch(x);
    OCTAVO_UNROLL
    for (int i = 0; i < columns / 2; ++i) d[place(t, i)] = x[i];
  }

 private:
  OCTAVO_DEVICE static int place(int t, int i) {
    return (t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8) * columns + i / 4 * 8 + t % 4 * 2 + i % 2;
  }
};

/// tcgen05: 128 rows, with scales [rows][steps] where there are any.
template <int columns>
struct tcgen05_product {
  static constexpr int threads = 128, most_steps = 4, rows = 128;
  static constexpr int scales_at = (rows + columns) * 32 * most_steps;
  static constexpr int scale_bytes = 2 * ptx::scale_tile_bytes;
  static constexpr int address_at = scales_at + scale_bytes, barrier_at = address_at + 8;
  static constexpr int shared_bytes = barrier_at + 8, blocks_per_sm = 1;
  static constexpr int scale_column = 128, allocated = 256;
  static_assert(columns <= 128);

  const std::uint8_t *a, *b;              ///< [128][32 steps], [columns][32 steps]
  const std::uint8_t *a_scale, *b_scale;  ///< null: none
  const float* c;                         ///< [128][columns], as d
  float* d;
  int steps;

  std::int64_t blocks() const { return 1; }

  OCTAVO_DEVICE void operator()() const {
    char* shared = ptx::shared_memory();
    auto* address = reinterpret_cast<ptx::tensor_address*>(shared + address_at);
    auto& barrier = *reinterpret_cast<ptx::shared_barrier*>(shared + barrier_at);
    const int t = ptx::thread_index(), warp = t / 32;
    if (warp == 0) ptx::tcgen05_alloc(address, allocated);
    if (t == 0) {
      barrier.init(1);
      ptx::fence_barriers();
    }
    fill(shared, t);
    ptx::fence_async();
    sync();
    const ptx::tensor_address at = *address;

    float x[columns];
    for (int i = 0; i < columns; ++i) x[i] = c[t * columns + i];
    ptx::tcgen05_store(at.of_warp(warp), x);
    ptx::tcgen05_wait_stores();
    sync();
    if (t == 0) multiply(shared, at, barrier);
    barrier.wait(0);
    ptx::tcgen05_fence_after();
    ptx::tcgen05_load(x, at.of_warp(warp));
    ptx::tcgen05_wait_loads(x);
    for (int i = 0; i < columns; ++i) d[t * columns + i] = x[i];
    sync();
    if (warp == 0) ptx::tcgen05_dealloc(at, allocated);
  }

 private:
  OCTAVO_DEVICE static void sync() {
    ptx::tcgen05_fence_before();
    ptx::sync_block();
    ptx::tcgen05_fence_after();
  }
  OCTAVO_DEVICE void fill(char* shared, int t) const {
    const int depth = 32 * steps;
    char* of_b = shared + rows * depth;
    for (int i = t; i < rows * depth; i += threads)
      shared[chunked(rows, i / depth, i % depth)] = static_cast<char>(a[i]);
    for (int i = t; i < columns * depth; i += threads)
      of_b[chunked(columns, i / depth, i % depth)] = static_cast<char>(b[i]);
    for (int i = t; i < scale_bytes; i += threads) shared[scales_at + i] = 0;
    ptx::sync_block();
    if (a_scale == nullptr) return;
    for (int s = 0; s < steps; ++s) {
      const int place = static_cast<int>(octavo::swizzled_scale_offset(t, s, 4));
      shared[scales_at + place] = static_cast<char>(a_scale[t * steps + s]);
      if (t < columns) shared[scales_at + ptx::scale_tile_bytes + place] = static_cast<char>(b_scale[t * steps + s]);
    }
  }
  OCTAVO_DEVICE void multiply(const char* shared, ptx::tensor_address at, ptx::shared_barrier& barrier) const {
    const char* of_b = shared + rows * 32 * steps;
    const ptx::tensor_address of_a_scale = at.column(scale_column), of_b_scale = at.column(scale_column + 4);
    if (a_scale != nullptr) {
      ptx::tcgen05_copy_scales(of_a_scale, ptx::shared_operand::scale_tile(shared + scales_at));
      ptx::tcgen05_copy_scales(of_b_scale, ptx::shared_operand::scale_tile(shared + scales_at + ptx::scale_tile_bytes));
    }
    for (int s = 0; s < steps; ++s) {
      const auto a32 = ptx::shared_operand::k_major(shared, rows).advanced(2 * 16 * rows * s);
      const auto b32 = ptx::shared_operand::k_major(of_b, columns).advanced(2 * 16 * columns * s);
      if (a_scale != nullptr)
        ptx::tcgen05_mma_scaled(at, a32, b32,
                                ptx::mma_instruction::scaled<octavo::e4m3, octavo::e4m3>(columns).scale_bytes(s, s),
                                of_a_scale, of_b_scale, true);
      else
        ptx::tcgen05_mma(at, a32, b32, ptx::mma_instruction::plain<octavo::e4m3, octavo::e4m3>(columns), true);
    }
    ptx::tcgen05_commit(barrier);
  }
};

}  // namespace golden
