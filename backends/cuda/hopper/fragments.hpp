// SPDX-License-Identifier: Apache-2.0
// What the loops do with the fragments of a warpgroup's products: whole contractions, where an element stands, and
// reductions over the four lanes of a quad, which hold a row between them.
#pragma once

#include <octavo/backends/cuda/common/scores.hpp>
#include <octavo/backends/cuda/hopper/images.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// A fragment of a product of 64 rows has 4 elements per 8 columns: element 4 n + e stands in row e / 2 of the thread's
/// two (8 apart) and in column 8 n + 2 q + e % 2.
OCTAVO_HD constexpr int row_half(int element) { return element / 2 % 2; }
OCTAVO_HD constexpr int column(int element, int quad_lane) { return element / 4 * 8 + quad_lane * 2 + element % 2; }

/// Where a thread stands in its warpgroup.
struct lane_place {
  int group;      ///< warpgroup of the block
  int warp;       ///< of the group
  int lane;       ///< of the warp
  int quad_lane;  ///< of the quad: its columns begin at 2 quad_lane
  int row;        ///< the first of the thread's two rows within the group's 64

  OCTAVO_DEVICE static lane_place here() {
    const int thread = ptx::thread_index(), in_group = thread % ptx::group_threads, lane = thread % ptx::warp_threads;
    const int warp = in_group / ptx::warp_threads;
    return {ptx::uniform(thread / ptx::group_threads), warp, lane, lane % 4, 16 * warp + lane / 4};
  }
};

/// d = A B^T over `bytes` bytes of both, started and closed as a group of its own.
template <int bytes, int R>
OCTAVO_DEVICE void start_product(float (&d)[R], ptx::matrix a, ptx::matrix b) {
  ptx::wgmma_touch(d);
  ptx::wgmma_fence();
  OCTAVO_UNROLL
  for (int k = 0; k < bytes / 32; ++k) ptx::wgmma(d, a.along_k(2 * k), b.along_k(2 * k), k > 0);
  ptx::wgmma_commit();
}
/// The same with A in registers.
template <int steps, int R>
OCTAVO_DEVICE void start_product(float (&d)[R], const std::uint32_t (&a)[steps][4], ptx::matrix b) {
  ptx::wgmma_touch(d);
  ptx::wgmma_fence();
  OCTAVO_UNROLL
  for (int k = 0; k < steps; ++k) ptx::wgmma(d, a[k], b.along_k(2 * k), k > 0);
  ptx::wgmma_commit();
}
/// Waits until at most `pending` younger groups run; d then holds its product.
template <int pending, int R>
OCTAVO_DEVICE void finish_product(float (&d)[R]) {
  ptx::wgmma_wait<pending>();
  ptx::wgmma_touch(d);
}

/// Register r of step k of a left operand made of a fragment: see pack_rows.
template <class E, int R>
OCTAVO_DEVICE std::uint32_t pack_word(const float (&x)[R], int k, int r) {
  const int first = 16 * k + 8 * (r / 2) + 2 * (r % 2);
  return ptx::pack<E>(x[first], x[first + 1], x[first + 4], x[first + 5]);
}
/// A fragment of 64 rows x N columns, rounded to E, as the left operand of a product over its columns, whose right one
/// is a column image in token_order::registers. N / 32 steps of four registers.
template <class E, int R, int steps>
OCTAVO_DEVICE void pack_rows(const float (&x)[R], std::uint32_t (&a)[steps][4]) {
  static_assert(R == 16 * steps);
  OCTAVO_UNROLL
  for (int k = 0; k < steps; ++k) {
    OCTAVO_UNROLL
    for (int r = 0; r < 4; ++r) a[k][r] = pack_word<E>(x, k, r);
  }
}
/// The byte of `a` that pack_rows made of element `element`.
template <int steps>
OCTAVO_DEVICE std::uint32_t packed_byte(const std::uint32_t (&a)[steps][4], int element) {
  const int step = element / 16, n = element / 4 % 4, half = row_half(element);
  return a[step][n / 2 * 2 + half] >> (8 * (n % 2 * 2 + element % 2)) & 0xff;
}

/// Elements [first, first + N) of an array.
template <int first, int N, int M>
OCTAVO_DEVICE float (&part_of(float (&x)[M]))[N] {
  static_assert(first + N <= M);
  return reinterpret_cast<float(&)[N]>(x[first]);
}

/// The largest of f(0) to f(R - 1) in each of the two rows. Eight running maxima, so that no comparison waits for the
/// one before.
template <int R, class F>
OCTAVO_DEVICE void row_maximum(float (&row)[2], F f) {
  float high[8];
  OCTAVO_UNROLL
  for (int i = 0; i < R; ++i) high[i % 8] = i < 8 ? f(i) : fmaxf(high[i % 8], f(i));
  row[0] = fmaxf(fmaxf(high[0], high[1]), fmaxf(high[4], high[5]));
  row[1] = fmaxf(fmaxf(high[2], high[3]), fmaxf(high[6], high[7]));
}
/// The largest of each row where it is positive, by comparing bits, which the hardware does three at a time; where it
/// is not, something that is not positive. A NaN is the largest, or passed over, by its sign.
template <int R>
OCTAVO_DEVICE void row_maximum_of_bits(const float (&x)[R], float (&row)[2]) {
  OCTAVO_UNROLL
  for (int half = 0; half < 2; ++half) {
    const auto larger = [](std::int32_t a, std::int32_t b) { return a > b ? a : b; };
    const auto bits = [&](int i) { return detail::bit_cast<std::int32_t>(x[i / 2 * 4 + 2 * half + i % 2]); };
    std::int32_t high[2] = {bits(0), bits(1)};
    OCTAVO_UNROLL
    for (int i = 2; i < R / 2; i += 2) {
      std::int32_t& of = high[i / 2 % 2];
      of = larger(larger(of, bits(i)), bits(i + 1));
    }
    row[half] = detail::bit_cast<float>(larger(high[0], high[1]));
  }
}
/// The largest magnitude; a NaN is passed over.
template <int R>
OCTAVO_DEVICE void row_amax(const float (&x)[R], float (&amax)[2]) {
  row_maximum<R>(amax, [&](int i) { return fabsf(x[i]); });
}

OCTAVO_DEVICE float max_over_quad(float x) {
  x = fmaxf(x, ptx::shuffle_xor(x, 1));
  return fmaxf(x, ptx::shuffle_xor(x, 2));
}
OCTAVO_DEVICE float sum_over_quad(float x) {
  x += ptx::shuffle_xor(x, 1);
  return x + ptx::shuffle_xor(x, 2);
}

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
