// SPDX-License-Identifier: Apache-2.0
// backends/hip/amdgcn/device.hpp on the host: what each instruction does to the simulated device.
#pragma once

#include <octavo/backends/sim/atomics.hpp>
#include <octavo/backends/sim/collective.hpp>
#include <octavo/backends/sim/exchange.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

inline constexpr int wave_lanes = 64;

inline int thread_index() { return sim::this_thread().index; }
inline std::int64_t block_index() { return sim::this_thread().home->index; }
inline char* shared_memory() { return sim::this_thread().home->shared; }

inline void sync_block(const sim::site where = sim::site::current()) {
  sim::meet(sim::collective_kind::sync_block, 0, 0, {}, where);
}
inline void sync_wave(const sim::site where = sim::site::current()) {
  sim::meet(sim::collective_kind::sync_warp, 0, 0, {}, where);
}

template <int S0, int S1, int S2, int S3>
std::uint32_t quad_perm(std::uint32_t x, const sim::site where = sim::site::current()) {
  return sim::dpp_quad_perm(x, S0, S1, S2, S3, where);
}
inline std::uint32_t row_half_mirror(std::uint32_t x, const sim::site where = sim::site::current()) {
  return sim::dpp_row_half_mirror(x, where);
}
template <int Count>
std::uint32_t row_ror(std::uint32_t x, const sim::site where = sim::site::current()) {
  return sim::dpp_row_ror(x, Count, where);
}
template <int Mask>
std::uint32_t swizzle_xor(std::uint32_t x, const sim::site where = sim::site::current()) {
  static_assert(Mask < 32);
  return sim::shuffle_xor(x, Mask, where);
}
inline std::uint32_t bpermute(std::uint32_t x, int source, const sim::site where = sim::site::current()) {
  return sim::shuffle_index(x, source, where);
}
inline bool any_lane(bool x, const sim::site where = sim::site::current()) { return sim::ballot(x, where) != 0; }

inline void load_piece(const void* from, std::uint32_t (&piece)[4], const sim::site where = sim::site::current()) {
  sim::check_vector(from, sizeof piece, where);
  std::memcpy(piece, from, sizeof piece);
}
inline std::uint32_t shared_address(void* p, const sim::site where = sim::site::current()) {
  sim::check_vector(p, 16, where);
  return sim::offset_in(*sim::this_thread().home, p, 16, where, "a piece");
}
inline void store_piece(std::uint32_t address, const std::uint32_t (&piece)[4]) {
  std::memcpy(shared_memory() + address, piece, sizeof piece);
}

inline void atomic_or(std::uint32_t* to, std::uint32_t bits, const sim::site where = sim::site::current()) {
  sim::atomic_update(to, [bits](std::uint32_t before) { return before | bits; }, sim::order::relaxed, where);
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
