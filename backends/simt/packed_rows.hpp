// SPDX-License-Identifier: Apache-2.0
// From accumulators to the left operand of the next product, in registers: P and dS of a warp's rows over a step's tokens,
// rounded where they are.
#pragma once

#include <octavo/backends/simt/fragments.hpp>
#include <octavo/backends/simt/operands.hpp>
#include <octavo/backends/simt/powers.hpp>
#include <octavo/backends/simt/scale_bits.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// The left operand of a product over N tokens.
template <class M, int row_tiles, int N, bool scaled>
struct packed_rows {
  using atom_layout = image_layout<M>;
  using shape = sums_of<M, row_tiles, N>;
  static constexpr int depths = N / atom_layout::depth;
  static_assert(N % atom_layout::depth == 0, "a step is whole depths of the atom");
  lane_operand<M, scaled> of[row_tiles][depths];

  /// The element of a fragment that became byte `byte` of word w.
  OCTAVO_HD static constexpr int element(int m, int k, int w, int byte) {
    constexpr int per_depth = atom_layout::depth / atom_layout::size * atom_layout::sums;
    return m * (N / atom_layout::size * atom_layout::sums) + k * per_depth + atom_layout::sum_of_byte(w, byte);
  }
  /// x rounded to E. Scales are one.
  template <class E>
  OCTAVO_DEVICE void pack(const float (&x)[shape::elements]) {
    each_word([&](int m, int k, int w) {
      if (w == 0) of[m][k].set_scale(scale_of_one);
      of[m][k].words[w] = M::template pack<E>(x[element(m, k, w, 0)], x[element(m, k, w, 1)], x[element(m, k, w, 2)],
                                              x[element(m, k, w, 3)]);
    });
  }
  /// x, P or dS of the backward, rounded to E with powers of two as the recipe has them: of rows, which `down` undoes, or
  /// of blocks, which the product does.
  template <class E>
  OCTAVO_DEVICE void pack_scaled(float (&x)[shape::elements], float (&down)[shape::rows], int lane) {
    if constexpr (scaled) {
      pack_by_blocks<E>(x, lane);
      OCTAVO_UNROLL
      for (float& factor : down) factor = 1;
    } else {
      pack_by_rows<E>(x, down);
    }
  }
  /// x rounded to E with a power of two per row, from its amax over the N tokens; down undoes it.
  template <class E>
  OCTAVO_DEVICE void pack_by_rows(float (&x)[shape::elements], float (&down)[shape::rows]) {
    float amax[shape::rows], up[shape::rows];
    row_amax<shape>(x, amax);
    OCTAVO_UNROLL
    for (int r = 0; r < shape::rows; ++r) {
      const power_of_two_scale scale = power_of_two_scale::of<E>(max_over_row<M>(amax[r]));
      up[r] = scale.up, down[r] = scale.down;
    }
    OCTAVO_UNROLL
    for (int i = 0; i < shape::elements; ++i) x[i] *= up[shape::row(i)];
    pack<E>(x);
  }
  /// x rounded to E with a power of two per row and 32 tokens, the E8M0 that the atom takes.
  template <class E>
  OCTAVO_DEVICE void pack_by_blocks(float (&x)[shape::elements], int lane) {
    static_assert(scaled);
    constexpr int blocks = N / mx_block, depth_blocks = atom_layout::depth / mx_block, slots = atom_layout::row_slots;
    float up[shape::rows][blocks];
    std::uint32_t bits[shape::rows][blocks];
    OCTAVO_UNROLL
    for (int r = 0; r < shape::rows; ++r) {
      OCTAVO_UNROLL
      for (int b = 0; b < blocks; ++b) {
        float amax = 0;  // a NaN is passed over
        OCTAVO_UNROLL
        for (int i = 0; i < shape::elements; ++i)
          if (shape::row(i) == r && shape::column(i) / mx_block == b) amax = fmaxf(amax, fabsf(x[i]));
        const std::uint32_t high = detail::bit_cast<std::uint32_t>(max_over_row<M>(amax));
        // What has overflowed is NaN, not a large number to be saturated.
        const bool overflowed = high >= detail::float_exponent_mask;
        const e8m0 scale = scale_for<E>(overflowed ? 0 : high);
        bits[r][b] = scale.bits;
        up[r][b] = overflowed ? detail::float_nan() : reciprocal_of(scale);
      }
    }
    OCTAVO_UNROLL
    for (int i = 0; i < shape::elements; ++i) x[i] *= up[shape::row(i)][shape::column(i) / mx_block];
    pack<E>(x);
    // A lane gives the scale of one of its rows, and of one block.
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) {
      OCTAVO_UNROLL
      for (int k = 0; k < depths; ++k) {
        OCTAVO_UNROLL
        for (int slot = 0; slot < slots; ++slot) {
          OCTAVO_UNROLL
          for (int b = 0; b < depth_blocks; ++b)
            if (atom_layout::gives_scale(lane, slot, b))
              of[m][k].set_scale(bits[m * slots + slot][k * depth_blocks + b]);
        }
      }
    }
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

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
