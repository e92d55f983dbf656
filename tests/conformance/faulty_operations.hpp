// SPDX-License-Identifier: Apache-2.0
// Backends with one wrong operation each. The loops are templates over the backend, so that a class that replaces one
// operation of the CPU backend is the mistake that somebody will make when writing the next backend.
#pragma once

#include <octavo/backends/cpu/backend.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace octavo_tests::faults {

using octavo::image, octavo::side, octavo::payload_plane;
using octavo::backends::cpu;
using context = cpu::context;

/// 2^0 for every block.
inline const std::uint8_t* unit_scales() {
  static const std::vector<std::uint8_t> ones(1 << 16, 127);
  return ones.data();
}

struct block_scale_dropped : cpu {
  template <class E, side S, image I, int R, int C>
  static void load(context& ctx, operand<E, S, I, R, C>& to, payload_plane x, std::int64_t first, int n) {
    x.rowwise_blocks = unit_scales();
    cpu::load(ctx, to, x, first, n);
  }
};

struct columnwise_read_as_rowwise : cpu {
  template <class E, side S, image I, int R, int C>
  static void load(context& ctx, operand<E, S, I, R, C>& to, payload_plane x, std::int64_t first, int n) {
    x.columnwise = x.rowwise, x.columnwise_stride = x.rowwise_stride;
    cpu::load(ctx, to, x, first, n);
  }
};

/// What lies in shared memory behind the last row of a short tile is whatever was there before.
struct tail_rows_not_zeroed : cpu {
  template <class E, side S, image I, int R, int C>
  static void load(context& ctx, operand<E, S, I, R, C>& to, const payload_plane& x, std::int64_t first, int n) {
    cpu::load(ctx, to, x, first, n);
    for (int i = n; i < to.rows; ++i)
      for (int c = 0; c < to.columns; ++c) to.at(i, c) = std::numeric_limits<float>::quiet_NaN();
  }
};

/// Scales of tokens are the only values by column that lie between 0 and 1.
struct key_scale_dropped : cpu {
  template <class Vector, class F>
  static void load_rows(context& ctx, Vector& r, int n, F f) {
    cpu::load_rows(ctx, r, n, f);
    if constexpr (std::is_same_v<Vector, col_vector<tile_kv>>)
      for (int j = 0; j < n; ++j)
        if (r.data[j] > 0 && r.data[j] < 1) r.data[j] = 1;
  }
};

/// Four significant bits, those of E4M3, the rest cut off.
inline float truncated(float x) {
  return octavo::detail::bit_cast<float>(octavo::detail::bit_cast<std::uint32_t>(x) & 0xfff00000u);
}

/// P is truncated where it should be rounded: it comes from here, and what is truncated rounds to itself.
struct p_truncated : cpu {
  static float exp2(float x) { return truncated(cpu::exp2(x)); }
};

/// The same for P and dS in the backward.
struct gradients_truncated : cpu {
  template <class Operand, class Descale, class Accum, class F, class... V>
  static void quantize(context& ctx, Operand& to, Descale& descale, const Accum& from, F f, const V&... v) {
    const auto cut = [f](float x, int i, int j, auto... values) { return truncated(f(x, i, j, values...)); };
    cpu::quantize(ctx, to, descale, from, cut, v...);
  }
};

/// The power of two that P and dS were divided by does not come back.
struct descale_forgotten : cpu {
  template <class Operand, class Descale, class Accum, class F, class... V>
  static void quantize(context& ctx, Operand& to, Descale& descale, const Accum& from, F f, const V&... v) {
    cpu::quantize(ctx, to, descale, from, f, v...);
    for (int i = 0; i < descale.size; ++i) descale.data[i] = 1;
  }
};

/// What the second key tile of a query tile adds to dQ is lost, as it is when two tiles add without an order.
struct dq_of_a_tile_lost : cpu {
  template <class F>
  static void in_order(context& ctx, std::int32_t* turn, std::int32_t number, F f) {
    cpu::in_order(ctx, turn, number, [&] {
      if (number != 1) f();
    });
  }
};

/// The product overwrites its accumulator instead of adding to it in slices of 64: the last slice survives.
struct contraction_cut : cpu {
  template <class Accum, class A, class B>
  static void mma(context& ctx, Accum& c, const A& a, const B& b) {
    B part = b;
    const int channels = b.contracted();
    std::vector<float> rest(b.data, b.data + b.rows * b.columns);
    if (channels > 64)
      for (int k = 0; k < channels - 64; ++k)
        for (int j = 0; j < b.free(); ++j) rest[static_cast<std::size_t>(k * b.free() + j)] = 0;
    part.data = rest.data();
    cpu::mma(ctx, c, a, part);
  }
};

}  // namespace octavo_tests::faults
