// SPDX-License-Identifier: Apache-2.0
// What the machines of CDNA share (backends/simt/machine.hpp): waves of 64 lanes, exchanges, transfers, arithmetic.
#pragma once

#include <octavo/backends/hip/amdgcn/convert.hpp>
#include <octavo/backends/hip/amdgcn/device.hpp>
#include <octavo/backends/hip/common/atoms.hpp>
#include <octavo/backends/simt/machine.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/fp16.hpp>

#include <bit>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hip_common {

struct wave_machine {
  static constexpr int lanes = amdgcn::wave_lanes;

  OCTAVO_DEVICE static int thread_index() { return amdgcn::thread_index(); }
  OCTAVO_DEVICE static std::int64_t block_index() { return amdgcn::block_index(); }
  OCTAVO_DEVICE static char* shared() { return amdgcn::shared_memory(); }

  OCTAVO_DEVICE static void sync_block() { amdgcn::sync_block(); }
  OCTAVO_DEVICE static void sync_warp() { amdgcn::sync_wave(); }

  /// Within sixteen lanes as a part of vector instructions; beyond, over the paths of shared memory. (The mask is a
  /// constant wherever a kernel calls this.)
  OCTAVO_DEVICE static std::uint32_t shuffle_xor(std::uint32_t x, int mask) {
    switch (mask) {
      case 1:
        return amdgcn::quad_perm<1, 0, 3, 2>(x);
      case 2:
        return amdgcn::quad_perm<2, 3, 0, 1>(x);
      case 4:  // 7 ^ 3
        return amdgcn::quad_perm<3, 2, 1, 0>(amdgcn::row_half_mirror(x));
      case 8:
        return amdgcn::row_ror<8>(x);
      case 16:
        return amdgcn::swizzle_xor<16>(x);
      default:
        return amdgcn::bpermute(x, thread_index() % lanes ^ mask);
    }
  }
  OCTAVO_DEVICE static float shuffle_xor(float x, int mask) {
    return std::bit_cast<float>(shuffle_xor(std::bit_cast<std::uint32_t>(x), mask));
  }
  OCTAVO_DEVICE static bool any_in_warp(bool x) { return amdgcn::any_lane(x); }

  static constexpr bool transfers_hold_registers = true;
  /// Through registers: the loads are under way until `deliver` stores what they bring.
  template <int n>
  struct transfer {
    static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
    std::uint32_t piece[n][4];
    std::uint32_t to[n];

    OCTAVO_DEVICE transfer() {
      OCTAVO_UNROLL
      for (std::uint32_t& x : to) x = nowhere;
    }
    OCTAVO_DEVICE void start(int i, void* destination, const void* from) {
      to[i] = amdgcn::shared_address(destination);
      amdgcn::load_piece(from, piece[i]);
    }
    OCTAVO_DEVICE void deliver() {
      OCTAVO_UNROLL
      for (int i = 0; i < n; ++i)
        if (to[i] != nowhere) amdgcn::store_piece(to[i], piece[i]);
    }
  };
  /// A store is done before a barrier lets its thread through.
  template <int pending>
  OCTAVO_DEVICE static void wait_transfers() {}

  OCTAVO_DEVICE static float exp2(float x) { return amdgcn::exp2(x); }
  OCTAVO_DEVICE static float tanh(float x) { return amdgcn::tanh(x); }
  OCTAVO_DEVICE static float multiply(float a, float b) { return amdgcn::multiply(a, b); }
  OCTAVO_DEVICE static float larger_or_nan(float a, float b) { return a != a || a > b ? a : b; }
  OCTAVO_DEVICE static std::uint32_t pack_bf16(float a, float b) {
    return bf16::nearest_even(a).bits | std::uint32_t{bf16::nearest_even(b).bits} << 16;
  }
  OCTAVO_DEVICE static std::uint32_t pack_f16(float a, float b) {
    return fp16::nearest_even(a).bits | std::uint32_t{fp16::nearest_even(b).bits} << 16;
  }
  OCTAVO_DEVICE static void unpack_f16(std::uint32_t word, float& a, float& b) {
    a = fp16::decode(static_cast<std::uint16_t>(word));
    b = fp16::decode(static_cast<std::uint16_t>(word >> 16));
  }
  OCTAVO_DEVICE static std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high, std::uint32_t selectors) {
    return amdgcn::perm(
        low, high, (selectors & 7) | (selectors & 0x70) << 4 | (selectors & 0x700) << 8 | (selectors & 0x7000) << 12);
  }

  OCTAVO_DEVICE static void atomic_or(std::uint32_t* to, std::uint32_t bits) { amdgcn::atomic_or(to, bits); }
};

}  // namespace backends::hip_common
OCTAVO_END_NAMESPACE
