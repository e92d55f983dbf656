// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/tensor_memory.hpp on the host. Registers that are loaded hold NaN until the warp's wait; stores reach
// tensor memory at once, and all that touches it too early is found by order.hpp.
#pragma once

#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/backends/sim/copies.hpp>
#include <octavo/backends/sim/instruction.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/ptx/device.hpp>
#include <octavo/backends/sim/tensor_memory.hpp>
#include <octavo/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

namespace detail {

inline constexpr std::uint32_t load_in_flight = 0x7fc0de05;  ///< a NaN that registers hold meanwhile

/// What a lane brings to an instruction of its warp on tensor memory.
struct tensor_lane {
  sim::thread* thread;
  std::uint32_t address;
  int columns;
  float* to = nullptr;
  const std::uint32_t* from = nullptr;
  sim::site where{};
};

inline void check_agreement(std::span<tensor_lane* const> lanes, const char* name) {
  for (const tensor_lane* l : lanes)
    if (l->address != lanes[0]->address || l->columns != lanes[0]->columns)
      sim::fault(l->where, std::string("lanes of a warp come to ") + name +
                               " with different operands: lane 0 with lane " + std::to_string(lanes[0]->address >> 16) +
                               ", column " + std::to_string(lanes[0]->address & 0xffff) + ", " +
                               std::to_string(lanes[0]->columns) + " columns, lane " +
                               std::to_string(l->thread->lane()) + " with lane " + std::to_string(l->address >> 16) +
                               ", column " + std::to_string(l->address & 0xffff) + ", " + std::to_string(l->columns) +
                               " columns");
}

/// The region of a 32x32b load or store of the warp, which reaches a quarter of the lanes only.
inline sim::tensor_region quarter_of(const tensor_lane& l, const char* name) {
  const int warp = l.thread->index / sim::lanes, lane = static_cast<int>(l.address >> 16);
  if (lane != warp % 4 * 32)
    sim::fault(l.where, std::string(name) + " from lane " + std::to_string(lane) + " on: warp " + std::to_string(warp) +
                            " of a block reaches lanes " + sim::range_text(warp % 4 * 32, 32));
  return {warp % 4, 1, static_cast<int>(l.address & 0xffff), l.columns};
}

inline sim::access next_access(sim::block& home, sim::agents::kind what, const tensor_lane& l, sim::tensor_use use) {
  const int agent = home.agents.of(what, static_cast<std::uint32_t>(l.thread->index / sim::lanes));
  return {agent, home.agents.next(agent, l.where), use, 0, l.where};
}

inline void model_load(std::span<tensor_lane* const> lanes) {
  check_agreement(lanes, "tcgen05_load");
  const tensor_lane& first = *lanes[0];
  sim::block& home = *first.thread->home;
  const sim::tensor_region r = quarter_of(first, "tcgen05_load");
  sim::touch_region(home, *first.thread, r, next_access(home, sim::agents::loads, first, sim::tensor_use::load), true,
                    false, "registers");
  sim::tensor_state& memory = sim::tensors_of(home);
  for (const tensor_lane* l : lanes) {
    sim::loaded_registers load{l->to, {}, l->where};
    for (int i = 0; i < r.columns; ++i)
      load.values.push_back(memory.cell(r.first_group * 32 + l->thread->lane(), r.column + i));
    for (int i = 0; i < r.columns; ++i) std::memcpy(l->to + i, &load_in_flight, 4);
    l->thread->loads.push_back(std::move(load));
  }
}

inline void model_store(std::span<tensor_lane* const> lanes) {
  check_agreement(lanes, "tcgen05_store");
  const tensor_lane& first = *lanes[0];
  sim::block& home = *first.thread->home;
  const sim::tensor_region r = quarter_of(first, "tcgen05_store");
  sim::touch_region(home, *first.thread, r, next_access(home, sim::agents::stores, first, sim::tensor_use::store),
                    false, true, "registers");
  sim::tensor_state& memory = sim::tensors_of(home);
  for (const tensor_lane* l : lanes)
    for (int i = 0; i < r.columns; ++i) memory.cell(r.first_group * 32 + l->thread->lane(), r.column + i) = l->from[i];
}

/// All operations of an agent of the warp have ended.
inline void end_operations(std::span<tensor_lane* const> lanes, sim::agents::kind what) {
  sim::block& home = *lanes[0]->thread->home;
  const int agent = home.agents.of(what, static_cast<std::uint32_t>(lanes[0]->thread->index / sim::lanes));
  for (const tensor_lane* l : lanes) l->thread->order.known.raise(agent, home.agents.last(agent));
}

struct register_array {
  float* at;
  int count;
};

/// Behind the wait: the caller's loads have their values, if it names all arrays that they went to.
inline void deliver_loads(const register_array* arrays, std::size_t count, const sim::site& where) {
  const sim::checks::unchecked here;
  sim::thread& t = sim::this_thread();
  for (const sim::loaded_registers& load : t.loads) {
    const int columns = static_cast<int>(load.values.size());
    bool named = false;
    for (std::size_t a = 0; a < count; ++a)
      named = named || (load.to >= arrays[a].at && load.to + columns <= arrays[a].at + arrays[a].count);
    if (!named)
      sim::fault(where, "waits for loads and does not name the array of one (" + sim::text_of(load.where) +
                            "): the compiler may read it before the wait");
    for (int i = 0; i < columns; ++i) {
      std::uint32_t now;
      std::memcpy(&now, load.to + i, 4);
      if (now != load_in_flight)
        sim::fault(where,
                   "wrote register " + std::to_string(i) + " of a load in flight (" + sim::text_of(load.where) + ")");
      std::memcpy(load.to + i, &load.values[static_cast<std::size_t>(i)], 4);
    }
  }
  t.loads.clear();
}

}  // namespace detail

inline void tcgen05_alloc(tensor_address* to, int columns, const sim::site where = sim::site::current()) {
  const std::uint32_t at = sim::offset_in(*sim::this_thread().home, to, 4, where, "where tcgen05_alloc writes");
  if (at % 4 != 0) sim::fault(where, "lets tcgen05_alloc write to where is not 4-byte aligned");
  detail::tensor_lane mine{&sim::this_thread(), at, columns, nullptr, nullptr, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) {
    detail::check_agreement(lanes, "tcgen05_alloc");
    const detail::tensor_lane& l = *lanes[0];
    const bool from_behind = sim::active_machine()->options.seed % 2 == 1;
    const auto column =
        static_cast<std::uint32_t>(sim::allocate_columns(*l.thread->home, *l.thread, l.columns, from_behind, l.where));
    std::memcpy(l.thread->home->shared + l.address, &column, 4);
    if constexpr (sim::checks::on)
      sim::checks::plain_access(l.thread->home->shared + l.address, 4, sim::checks::access::write, l.where);
  };
  sim::warp_instruction("tcgen05_alloc", mine, model, where);
}
inline void tcgen05_dealloc(tensor_address from, int columns, const sim::site where = sim::site::current()) {
  detail::tensor_lane mine{&sim::this_thread(), from.bits, columns, nullptr, nullptr, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) {
    detail::check_agreement(lanes, "tcgen05_dealloc");
    const detail::tensor_lane& l = *lanes[0];
    sim::free_columns(*l.thread->home, *l.thread, l.address, l.columns, l.where);
  };
  sim::warp_instruction("tcgen05_dealloc", mine, model, where);
}
inline void tcgen05_relinquish(const sim::site where = sim::site::current()) {
  detail::tensor_lane mine{&sim::this_thread(), 0, 0, nullptr, nullptr, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) {
    sim::tensor_state& memory = sim::tensors_of(*lanes[0]->thread->home);
    memory.relinquished = true;
    memory.relinquished_at = lanes[0]->where;
  };
  sim::warp_instruction("tcgen05_relinquish", mine, model, where);
}

inline void tcgen05_fence_before() {
  const sim::checks::unchecked here;
  sim::knowledge& mine = sim::this_thread().order;
  mine.heard.join(mine.known);
  sim::maybe_yield();
}
inline void tcgen05_fence_after() {
  const sim::checks::unchecked here;
  sim::knowledge& mine = sim::this_thread().order;
  mine.known.join(mine.heard);
  sim::maybe_yield();
}

template <int n, int N>
void tcgen05_load(float (&d)[N], int first, tensor_address from, const sim::site where = sim::site::current()) {
  constexpr int step = n < 32 ? n : 32;
  static_assert(n > 0 && n % step == 0 && (step & (step - 1)) == 0, "n is 1, 2, 4, 8, 16 or a multiple of 32");
  if (first < 0 || first + n > N) sim::fault(where, "loads past the end of an array of " + std::to_string(N));
  detail::tensor_lane mine{&sim::this_thread(), from.bits, n, d + first, nullptr, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) { detail::model_load(lanes); };
  sim::warp_instruction("tcgen05_load", mine, model, where);
}
template <int N>
void tcgen05_load(float (&d)[N], tensor_address from, const sim::site where = sim::site::current()) {
  tcgen05_load<N>(d, 0, from, where);
}

namespace detail {
inline void wait_loads(const register_array* arrays, std::size_t count, const sim::site& where) {
  tensor_lane mine{&sim::this_thread(), 0, 0, nullptr, nullptr, where};
  const auto model = [](std::span<tensor_lane* const> lanes) { end_operations(lanes, sim::agents::loads); };
  sim::warp_instruction("tcgen05_wait_loads", mine, model, where);
  deliver_loads(arrays, count, where);
}
}  // namespace detail

template <int N>
void tcgen05_wait_loads(float (&d)[N], const sim::site where = sim::site::current()) {
  const detail::register_array arrays[] = {{d, N}};
  detail::wait_loads(arrays, 1, where);
}
template <int N, int M>
void tcgen05_wait_loads(float (&d)[N], float (&e)[M], const sim::site where = sim::site::current()) {
  const detail::register_array arrays[] = {{d, N}, {e, M}};
  detail::wait_loads(arrays, 2, where);
}
template <int N, int M, int L>
void tcgen05_wait_loads(float (&d)[N], float (&e)[M], float (&f)[L], const sim::site where = sim::site::current()) {
  const detail::register_array arrays[] = {{d, N}, {e, M}, {f, L}};
  detail::wait_loads(arrays, 3, where);
}

template <int n, class T, int N>
void tcgen05_store(tensor_address to, const T (&x)[N], int first, const sim::site where = sim::site::current()) {
  constexpr int step = n < 32 ? n : 32;
  static_assert(sizeof(T) == 4, "registers have 32 bits");
  static_assert(n > 0 && n % step == 0 && (step & (step - 1)) == 0, "n is 1, 2, 4, 8, 16 or a multiple of 32");
  if (first < 0 || first + n > N) sim::fault(where, "stores from past the end of an array of " + std::to_string(N));
  std::uint32_t bits[n];
  std::memcpy(bits, x + first, sizeof bits);
  detail::tensor_lane mine{&sim::this_thread(), to.bits, n, nullptr, bits, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) { detail::model_store(lanes); };
  sim::warp_instruction("tcgen05_store", mine, model, where);
}
template <class T, int N>
void tcgen05_store(tensor_address to, const T (&x)[N], const sim::site where = sim::site::current()) {
  tcgen05_store<N>(to, x, 0, where);
}
inline void tcgen05_wait_stores(const sim::site where = sim::site::current()) {
  detail::tensor_lane mine{&sim::this_thread(), 0, 0, nullptr, nullptr, where};
  const auto model = [](std::span<detail::tensor_lane* const> lanes) {
    detail::end_operations(lanes, sim::agents::stores);
  };
  sim::warp_instruction("tcgen05_wait_stores", mine, model, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
