// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/device.hpp on the host: what each wrapper does to the simulated device.
#pragma once

#include <octavo/backends/sim/collective.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline constexpr int warp_threads = sim::lanes;
inline constexpr int group_threads = sim::group_lanes;

inline int thread_index() { return sim::this_thread().index; }
inline std::int64_t block_index() { return sim::this_thread().home->index; }

inline char* shared_memory() { return sim::this_thread().home->shared; }
inline std::uint32_t shared_address(const void* p, const sim::site where = sim::site::current()) {
  return sim::shared_base + sim::offset_in(*sim::this_thread().home, p, 0, where, "an address");
}

inline void sync_block(const sim::site where = sim::site::current()) {
  sim::meet(sim::collective_kind::sync_block, 0, 0, {}, where);
}
inline void sync_warp(const sim::site where = sim::site::current()) {
  sim::meet(sim::collective_kind::sync_warp, 0, 0, {}, where);
}

namespace detail {
inline void check_named(int id, int threads, const sim::site& where) {
  if (id < 1 || id >= sim::barrier_count) sim::fault(where, "names barrier " + std::to_string(id) + ": not 1 to 15");
  if (threads <= 0 || threads % warp_threads != 0)
    sim::fault(where, "comes to a barrier of " + std::to_string(threads) + " threads: not whole warps");
}
}  // namespace detail

inline void sync_named(int id, int threads, const sim::site where = sim::site::current()) {
  detail::check_named(id, threads, where);
  sim::meet(sim::collective_kind::sync_named, id, threads, {}, where);
}
inline void arrive_named(int id, int threads, const sim::site where = sim::site::current()) {
  detail::check_named(id, threads, where);
  sim::meet(sim::collective_kind::arrive_named, id, threads, {}, where);
}

/// The caller's x is the same in all lanes already.
inline int uniform(int x) { return x; }
inline std::uint32_t shuffle_xor(std::uint32_t x, int lanes, const sim::site where = sim::site::current()) {
  return sim::meet(sim::collective_kind::shuffle, 0, 0, {.values = {x}, .argument = lanes}, where);
}
inline float shuffle_xor(float x, int lanes, const sim::site where = sim::site::current()) {
  return std::bit_cast<float>(shuffle_xor(std::bit_cast<std::uint32_t>(x), lanes, where));
}
inline std::uint32_t max_over_warp(std::uint32_t x, const sim::site where = sim::site::current()) {
  return sim::meet(sim::collective_kind::maximum, 0, 0, {.values = {x}}, where);
}
inline int unknown_zero() { return 0; }
inline bool any_in_warp(bool x, const sim::site where = sim::site::current()) {
  return sim::meet(sim::collective_kind::any, 0, 0, {.values = {x}}, where) != 0;
}

template <int N>
inline void raise_registers(const sim::site where = sim::site::current()) {
  sim::set_registers(N, true, where);
}
template <int N>
inline void lower_registers(const sim::site where = sim::site::current()) {
  sim::set_registers(N, false, where);
}

namespace detail {
/// An addition or the like in memory, with no order beyond that of fences.
inline void check_atomic(const void* at, std::size_t bytes, const sim::site& where) {
  if constexpr (sim::checks::on)
    sim::checks::atomic_access(at, bytes, sim::checks::access::write, true, sim::checks::order::relaxed, where);
}
}  // namespace detail

inline void reduce_add(float* to, float a, float b, float c, float d, const sim::site where = sim::site::current()) {
  sim::maybe_yield();
  if (reinterpret_cast<std::uintptr_t>(to) % 16 != 0)
    sim::fault(where, "adds to an address that is not 16-byte aligned");
  detail::check_atomic(to, 16, where);
  const sim::checks::unchecked here;
  to[0] += a;
  to[1] += b;
  to[2] += c;
  to[3] += d;
}
inline void atomic_or(std::uint32_t* to, std::uint32_t bits, const sim::site where = sim::site::current()) {
  sim::maybe_yield();
  detail::check_atomic(to, 4, where);
  const sim::checks::unchecked here;
  *to |= bits;
}
inline std::int32_t atomic_add(std::int32_t* to, std::int32_t x, const sim::site where = sim::site::current()) {
  sim::maybe_yield();
  detail::check_atomic(to, 4, where);
  const sim::checks::unchecked here;
  const std::int32_t before = *to;
  *to += x;
  return before;
}

inline void wait_turn(const std::int32_t* turn, std::int32_t number, const sim::site where = sim::site::current()) {
  const sim::checks::unchecked here;
  sim::maybe_yield();
  sim::machine& m = sim::the_machine();
  if (*turn != number) ++m.report.turns;
  while (*static_cast<const volatile std::int32_t*>(turn) != number) {
    m.waiting_for_turn.push_back(m.current);
    sim::wait_for({.kind = sim::wait_kind::turn, .number = number, .turn = turn, .where = where});
  }
  if constexpr (sim::checks::on)
    sim::checks::atomic_access(turn, 4, sim::checks::access::read, false, sim::checks::order::acquire, where);
}
inline void pass_turn(std::int32_t* turn, std::int32_t number, const sim::site where = sim::site::current()) {
  const sim::checks::unchecked here;
  if constexpr (sim::checks::on)
    sim::checks::atomic_access(turn, 4, sim::checks::access::write, false, sim::checks::order::release, where);
  *static_cast<volatile std::int32_t*>(turn) = number;
  sim::poll_turns(sim::the_machine());
  sim::maybe_yield();
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
