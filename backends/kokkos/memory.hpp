// SPDX-License-Identifier: Apache-2.0
// Between tiles and global memory: payloads in, results out, sums in turn.
#pragma once

#include <octavo/backends/kokkos/tile.hpp>
#include <octavo/scaling/quantize.hpp>

#include <thread>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// Channels [j0, j0 + N) of a token as floats: payload, times its block scales where they travel in the operand. The
/// channels lie within one block of 32.
template <class E, image I, int N>
KOKKOS_FUNCTION void read_channels(const payload_plane& x, std::int64_t token, int j0, int d, float (&out)[N]) {
  using T = typename element_of<E>::type;
  const std::uint8_t* bytes = I == image::rowwise ? x.rowwise : x.columnwise;
  const std::int64_t first = token * (I == image::rowwise ? x.rowwise_stride : x.columnwise_stride) + j0;
  if constexpr (std::is_same_v<T, bf16>) {
    const auto* from = reinterpret_cast<const bf16*>(bytes) + first;
    for (int j = 0; j < N; ++j) out[j] = nan_unless_finite(static_cast<float>(from[j]));
  } else {
    for (int j = 0; j < N; ++j) out[j] = T::decode(bytes[first + j]);
  }
  if constexpr (element_of<E>::block_scaled && I == image::rowwise) {
    const float scale = static_cast<float>(e8m0{x.rowwise_blocks[token * (d / mx_block) + j0 / mx_block]});
    for (int j = 0; j < N; ++j) out[j] *= scale;
  } else if constexpr (element_of<E>::block_scaled) {
    const std::uint8_t* scales = x.columnwise_blocks + token / mx_block * d + j0;
    for (int j = 0; j < N; ++j) out[j] *= static_cast<float>(e8m0{scales[j]});
  }
}

/// Whether a tile holds neither an infinity nor a NaN; the team's threads all learn it.
template <class Space>
KOKKOS_FUNCTION bool all_finite(context<Space>& c, const float* x, int rows, int columns) {
  int wrong_rows = 0;
  Kokkos::parallel_reduce(
      Kokkos::TeamThreadRange(c.team(), rows),
      [&](int i, int& sum) {
        std::uint32_t wrong = 0;
        for (int j = 0; j < columns; ++j) {
          const std::uint32_t exponent =
              detail::bit_cast<std::uint32_t>(x[i * columns + j]) & detail::float_exponent_mask;
          wrong |= static_cast<std::uint32_t>(exponent == detail::float_exponent_mask);
        }
        sum += static_cast<int>(wrong);
      },
      wrong_rows);
  return wrong_rows == 0;
}

template <class Space>
struct memory_operations {
  template <class E, side S, image I, int R, int C>
  KOKKOS_FUNCTION static void load(context<Space>& c, operand<Space, E, S, I, R, C>& to, const payload_plane& x,
                                   std::int64_t first, int n) {
    constexpr int edge = tuning<Space>::square;
    for_squares(c, to.rows, to.columns, [&](int i0, int j0) {
      float square[edge][edge];
      for (int i = 0; i < edge; ++i)
        if (i0 + i < n)
          read_channels<E, I>(x, first + i0 + i, j0, to.columns, square[i]);
        else
          for (int j = 0; j < edge; ++j) square[i][j] = 0;
      to.put(i0, j0, square);
    });
    if constexpr (S == side::right) to.finite = all_finite(c, to.data, to.rows, to.columns);
  }

  template <int M, int N>
  KOKKOS_FUNCTION static void store(context<Space>& c, const tensor& to, std::int64_t offset,
                                    const accum<Space, M, N>& from, int n) {
    for_each(c, n, [&](int i) { write_elements(to, offset + i * to.stride_s, from.columns, from.row(i)); });
  }

  template <int M, int N>
  KOKKOS_FUNCTION static void accumulate(context<Space>& c, float* to, std::int64_t stride,
                                         const accum<Space, M, N>& from, int n) {
    for_elements(c, n, from.columns, [&](int i, int j) { to[i * stride + j] += from.row(i)[j]; });
  }

  /// Teams take items by ticket, so a key tile waits only for tiles of teams that began before its own: see launch.hpp.
  template <class F>
  KOKKOS_FUNCTION static void in_order(context<Space>& c, std::int32_t* turn, std::int32_t number, const F& f) {
    Kokkos::single(Kokkos::PerTeam(c.team()), [&] {
      while (Kokkos::atomic_fetch_add(turn, 0) != number)  // a load, in the words of every version
        if constexpr (on_host<Space>) std::this_thread::yield();
      Kokkos::memory_fence();
    });
    c.barrier();
    f();
    Kokkos::single(Kokkos::PerTeam(c.team()), [&] {
      Kokkos::memory_fence();
      Kokkos::atomic_fetch_add(turn, 1);
    });
  }
};

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
