// SPDX-License-Identifier: Apache-2.0
// NVIDIA's machine for the lane-level kernels: warps of 32 lanes, mma.sync on FP8, cp.async. What it is made of stands in
// ../ptx, which on a host resolves to the models of backends/sim.
#pragma once

#include <octavo/backends/cuda/ptx/async.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/backends/cuda/ptx/mma.hpp>
#include <octavo/backends/simt/machine.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::nvidia {

/// Two m16n8k32 side by side; ptx/mma.hpp has the source of the layout. Words 0 and 2 of a right operand are the first
/// eight columns', words 1 and 3 the other eight's, which is how a left operand has its rows.
template <class L, class R>
struct mma_atom {
  static constexpr int size = 16, depth = 32, words = 4, sums = 8;
  static constexpr float unit = 1;
  static constexpr bool block_scaled = false, long_sums = false;
  OCTAVO_HD static constexpr int operand_row(int lane, int word) { return lane / 4 + 8 * (word % 2); }
  OCTAVO_HD static constexpr int operand_depth(int lane, int word) { return 4 * (lane % 4) + 16 * (word / 2); }
  OCTAVO_HD static constexpr int sum_row(int lane, int i) { return lane / 4 + 8 * (i / 2 % 2); }
  OCTAVO_HD static constexpr int sum_column(int lane, int i) { return 8 * (i / 4) + 2 * (lane % 4) + i % 2; }

  OCTAVO_DEVICE static void mma(float (&d)[sums], const std::uint32_t (&l)[words], const std::uint32_t (&r)[words]) {
    ptx::mma<L, R>(d[0], d[1], d[2], d[3], l, r[0], r[2]);
    ptx::mma<L, R>(d[4], d[5], d[6], d[7], l, r[1], r[3]);
  }

  OCTAVO_DEVICE static void convert_left(const std::uint32_t (&l)[words], std::uint32_t (&to)[2 * words]) {
    ptx::convert_left<L>(l, to);
  }
  OCTAVO_DEVICE static void mma_converted(float (&d)[sums], const std::uint32_t (&l)[2 * words],
                                          const std::uint32_t (&r)[words]) {
    ptx::mma_converted<L, R>(d[0], d[1], d[2], d[3], l, r[0], r[2]);
    ptx::mma_converted<L, R>(d[4], d[5], d[6], d[7], l, r[1], r[3]);
  }
};

struct machine {
  static constexpr int lanes = ptx::warp_threads;
  static constexpr int shared_bytes = 227 * 1024;  ///< of sm_90; what a device lacks of it, a backend refuses

  template <class Recipe>
  static constexpr bool computes =
      Recipe::scale_per == recipe::granularity::tile128 || Recipe::scale_per == recipe::granularity::token;

  template <class L, class R>
  using atom = mma_atom<L, R>;

  /// sm_90 converts operands to F16. Two row tiles make every right operand serve twice; a warp's own rows are converted
  /// once, except where that was slower. Registers decide the rest: at d 128 dK or dV of 32 keys take 128, so
  /// that a warp has one of them. Shared memory is kept to the 99 KB of sm_89 and sm_120.
  static constexpr simt::schedule plan(simt::work which, int d, recipe::granularity scale_per) {
    const bool by_token = scale_per == recipe::granularity::token;  // whose factors take registers, too
    const auto two_tiles = [](int step, bool converted = true) -> simt::schedule {
      return {.row_tiles = 2, .step = step, .stages = 2, .blocks_per_sm = 2, .rows_converted = converted};
    };
    const simt::schedule one_tile_of_32{.row_tiles = 1, .step = 32, .stages = 2, .blocks_per_sm = 1};
    switch (which) {
      case simt::work::forward:
        // The longer the step, the sooner M is final, and the less the forward keeps of P that its final M lets underflow.
        if (d <= 64 && by_token) return {.row_tiles = 1, .step = 128, .stages = 2, .blocks_per_sm = 1};
        return d <= 64 ? two_tiles(128) : d <= 128 ? two_tiles(64) : one_tile_of_32;
      case simt::work::delta_sums:
        return d <= 128 ? two_tiles(64, d <= 64 || !by_token) : one_tile_of_32;
      case simt::work::dq:
        return d <= 128 ? two_tiles(d <= 64 && !by_token ? 64 : 32) : one_tile_of_32;
      case simt::work::dkv:
        if (d <= 64 && by_token) return {.row_tiles = 1, .step = 64, .stages = 2, .blocks_per_sm = 1};
        if (d <= 64) return two_tiles(32, false);  // keeping converted keys costs registers: 9 % slower on an H200
        if (d <= 128)
          return {.row_tiles = 2,
                  .step = 32,
                  .stages = 2,
                  .blocks_per_sm = 1,
                  .rows_in_registers = true,
                  .paired = true,
                  .rows_converted = true};
        return {.row_tiles = 1, .step = 32, .stages = 2, .blocks_per_sm = 1, .parts = 2};
    }
    return {};
  }

  OCTAVO_DEVICE static int thread_index() { return ptx::thread_index(); }
  OCTAVO_DEVICE static std::int64_t block_index() { return ptx::block_index(); }
  OCTAVO_DEVICE static char* shared() { return ptx::shared_memory(); }

  OCTAVO_DEVICE static void sync_block() { ptx::sync_block(); }
  OCTAVO_DEVICE static void sync_warp() { ptx::sync_warp(); }
  OCTAVO_DEVICE static float shuffle_xor(float x, int mask) { return ptx::shuffle_xor(x, mask); }
  OCTAVO_DEVICE static std::uint32_t shuffle_xor(std::uint32_t x, int mask) { return ptx::shuffle_xor(x, mask); }
  OCTAVO_DEVICE static int unknown_zero() { return ptx::unknown_zero(); }
  OCTAVO_DEVICE static bool any_in_warp(bool x) { return ptx::any_in_warp(x); }

  static constexpr bool transfers_hold_registers = false;
  template <int n>
  struct transfer {
    OCTAVO_DEVICE void start(int, void* to, const void* from) { ptx::copy_piece(to, from); }
    OCTAVO_DEVICE void deliver() { ptx::commit_pieces(); }
  };
  template <int pending>
  OCTAVO_DEVICE static void wait_transfers() {
    ptx::wait_pieces<pending>();
  }

  OCTAVO_DEVICE static float exp2(float x) { return ptx::exp2_approximate(x); }
  OCTAVO_DEVICE static float tanh(float x) { return tanhf(x); }
  OCTAVO_DEVICE static float multiply(float a, float b) { return ptx::multiply(a, b); }
  OCTAVO_DEVICE static float larger_or_nan(float a, float b) { return ptx::larger_or_nan(a, b); }
  OCTAVO_DEVICE static std::uint32_t pack_bf16(float a, float b) { return ptx::pack_bf16(a, b); }
  OCTAVO_DEVICE static std::uint32_t pack_f16(float a, float b) { return ptx::pack_f16(a, b); }
  OCTAVO_DEVICE static void unpack_f16(std::uint32_t word, float& a, float& b) { ptx::unpack_f16(word, a, b); }
  OCTAVO_DEVICE static std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
    return ptx::permute_bytes(low, high, selectors);
  }

  template <class E>
  OCTAVO_DEVICE static std::uint32_t pack(float a, float b, float c, float d) {
    return ptx::pack<E>(a, b, c, d);
  }
  template <class E>
  OCTAVO_DEVICE static std::uint32_t payload(float a, float b, float c, float d) {
    return ptx::pack<E>(a, b, c, d);
  }
  template <class E>
  OCTAVO_DEVICE static void unpack(std::uint32_t word, float (&x)[4]) {
    static_assert(std::is_same_v<E, e4m3>, "only P is unpacked");
    ptx::unpack_e4m3(word, x);
  }
  template <class E>
  OCTAVO_DEVICE static std::uint32_t operand_bytes(std::uint32_t word) {
    return word;
  }
  OCTAVO_DEVICE static bool is_weight(std::uint32_t byte) { return (byte & 0x7f) != 0; }

  OCTAVO_DEVICE static void atomic_or(std::uint32_t* to, std::uint32_t bits) { ptx::atomic_or(to, bits); }
};

static_assert(simt::require_machine<machine>::value);

}  // namespace backends::nvidia
OCTAVO_END_NAMESPACE
