// SPDX-License-Identifier: Apache-2.0
// Instructions of a warp, and the barriers of a block that warps come to. The PTX ISA lets all of them (.aligned) only
// be reached by all lanes of a warp; barriers count whole warps.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline void wake_all(std::vector<thread*>& threads) {
  for (thread* t : threads) wake(*t);
  threads.clear();
}

/// A warp arrives at a barrier of its block. Returns whether its lanes go on; else they are among those who wait.
inline bool arrive_at_barrier(block& home, warp& w, int first_thread, int id, int expected, bool waits) {
  named_barrier& barrier = home.barriers[static_cast<std::size_t>(id)];
  if (barrier.arrived == 0) barrier.expected = expected;
  const std::string name = "barrier " + std::to_string(id);
  if (barrier.expected != expected)
    fault(w.where, "comes to " + name + " of " + std::to_string(expected) +
                       " threads, to which others came as one of " + std::to_string(barrier.expected));
  barrier.arrived += home.warp_lanes;
  if constexpr (checks::on) checks::arrive_at_barrier(id, first_thread);
  if (barrier.arrived > expected)
    fault(w.where, "is one too many at " + name + ": " + std::to_string(barrier.arrived) + " of " +
                       std::to_string(expected) + " threads");
  const auto first = home.threads.begin() + first_thread, last = first + home.warp_lanes;
  std::for_each(first, last, [&](const thread& t) { barrier.heard.join(t.order.heard); });
  if (barrier.arrived == expected) {
    ++active_machine()->report.named_barriers;
    barrier.arrived = 0;
    for (thread* t : barrier.waiting) t->order.heard.join(barrier.heard);
    if (waits) std::for_each(first, last, [&](thread& t) { t.order.heard.join(barrier.heard); });
    barrier.heard.clear();
    if constexpr (checks::on) {
      for (const thread* t : barrier.waiting) checks::leave_barrier(id, t->index);
      for (int lane = 0; waits && lane < home.warp_lanes; ++lane) checks::leave_barrier(id, first_thread + lane);
      checks::end_barrier(id);
    }
    wake_all(barrier.waiting);
    return true;
  }
  if (!waits) return true;
  for (int lane = 0; lane < home.warp_lanes; ++lane) {
    thread& t = home.threads[static_cast<std::size_t>(first_thread + lane)];
    t.wait.kind = wait_kind::barrier;
    t.wait.id = id;
    barrier.waiting.push_back(&t);
  }
  return false;
}

inline bool take_registers(block& home, warp& w, int count) {
  if (count - w.registers > home.free_registers) return false;
  home.free_registers -= count - w.registers;
  w.registers = count;
  return true;
}

/// What the last lane to arrive does for all. Returns whether they go on; else they wait at a barrier.
inline bool complete(block& home, warp& w, int first_thread) {
  switch (w.kind) {
    case collective_kind::sync_warp: {
      const auto first = home.threads.begin() + first_thread, last = first + home.warp_lanes;
      clock all;
      std::for_each(first, last, [&](const thread& t) { all.join(t.order.heard); });
      std::for_each(first, last, [&](thread& t) { t.order.heard.join(all); });
      if constexpr (checks::on) checks::warp_barrier(first_thread);
      return true;
    }
    case collective_kind::shuffle:
      for (int lane = 0; lane < home.warp_lanes; ++lane) {
        const auto at = static_cast<std::size_t>(lane);
        w.result[at] =
            w.given[static_cast<std::size_t>(lane ^ (w.given[at].argument & (home.warp_lanes - 1)))].values[0];
      }
      return true;
    case collective_kind::maximum: {
      std::uint32_t most = 0;
      for (const contribution& c : w.given) most = c.values[0] > most ? c.values[0] : most;
      w.result.fill(most);
      return true;
    }
    case collective_kind::any: {
      std::uint32_t any = 0;
      for (const contribution& c : w.given) any |= c.values[0];
      w.result.fill(any);
      return true;
    }
    case collective_kind::store:
      // Lane l holds elements (row l / 4, columns 2 (l % 4) and + 1) of each 8 x 8 matrix; .trans makes columns the
      // rows that are stored, at the addresses of lanes 8 i to 8 i + 7 for matrix i.
      for (std::size_t matrix = 0; matrix < 4; ++matrix)
        for (std::size_t lane = 0; lane < lanes; ++lane)
          for (std::size_t e = 0; e < 2; ++e) {
            const auto element = static_cast<std::uint16_t>(w.given[lane].values[matrix] >> 16 * e);
            std::memcpy(w.given[8 * matrix + 2 * (lane % 4) + e].row + 2 * (lane / 4), &element, 2);
          }
      return true;
    case collective_kind::instruction: {
      std::array<void*, most_lanes> registers;
      for (std::size_t lane = 0; lane < registers.size(); ++lane) registers[lane] = w.given[lane].registers;
      w.what.model(w.what.context, registers.data(), home.warp_lanes);
      if (w.what.counted) ++active_machine()->report.matrix_instructions[w.what.name];
      return true;
    }
    case collective_kind::together:
      w.given[0].together(w.given.data(), lanes);
      return true;
    case collective_kind::sync_block:
      return arrive_at_barrier(home, w, first_thread, 0, static_cast<int>(home.threads.size()), true);
    case collective_kind::sync_named:
    case collective_kind::arrive_named:
      return arrive_at_barrier(home, w, first_thread, w.first, w.second, w.kind == collective_kind::sync_named);
    default:
      return true;
  }
}

/// The running thread brings `given` to a collective; returns when all lanes of its warp have come (and what the
/// collective waits for has happened). `first` and `second` are operands in which lanes must agree.
inline std::uint32_t meet(collective_kind kind, int first, int second, const contribution& given, const site& where,
                          const instruction& what = {}) {
  const checks::unchecked here;
  maybe_yield();
  machine& m = the_machine();
  thread& t = *m.current;
  block& home = *t.home;
  warp& w = home.warp_of(t);
  const int first_thread = t.index / home.warp_lanes * home.warp_lanes;
  const char* name = what.name != nullptr ? what.name : name_of(kind);
  if (w.finished > 0)
    fault(where, std::string("comes to ") + name + ", but " + std::to_string(w.finished) +
                     " lanes of its warp have returned from the kernel");
  if (kind == collective_kind::sync_block && home.finished > 0)
    fault(where, "comes to sync_block, but " + std::to_string(home.finished) + " threads of the block have returned");
  if (w.arrived == 0) {
    w.kind = kind;
    w.first = first;
    w.second = second;
    w.what = what;
    w.where = where;
    w.first_lane = t.lane();
  } else if (w.kind != kind || w.first != first || w.second != second || w.what.model != what.model) {
    fault(where, std::string("comes to ") + name + "(" + std::to_string(first) + ", " + std::to_string(second) +
                     ") while lane " + std::to_string(w.first_lane) + " of its warp is at " + name_of(w) + "(" +
                     std::to_string(w.first) + ", " + std::to_string(w.second) + ") (" + text_of(w.where) + ")");
  }
  w.given[static_cast<std::size_t>(t.lane())] = given;
  if (++w.arrived < home.warp_lanes) {
    wait_for({.kind = wait_kind::collective, .where = where});
    return w.result[static_cast<std::size_t>(t.lane())];
  }
  w.arrived = 0;
  ++m.report.warp_collectives;
  if (complete(home, w, first_thread)) {
    for (int lane = 0; lane < home.warp_lanes; ++lane)
      if (lane != t.lane()) wake(home.threads[static_cast<std::size_t>(first_thread + lane)]);
  } else {
    wait_for({.kind = wait_kind::barrier, .id = t.wait.id, .where = where});
  }
  return w.result[static_cast<std::size_t>(t.lane())];
}

/// setmaxnreg: more wait until others have given back.
inline void set_registers(int count, bool raise, const site& where) {
  const checks::unchecked here;
  meet(collective_kind::registers, count, raise, {}, where);
  machine& m = the_machine();
  thread& t = *m.current;
  block& home = *t.home;
  warp& w = home.warp_of(t);
  if (w.registers == count) return;  // another lane has done it
  if (count % 8 != 0 || count < 24 || count > 256)
    fault(where, "asks for " + std::to_string(count) + " registers: not a multiple of 8 from 24 to 256");
  if ((count > w.registers) != raise)
    fault(where, std::string(raise ? "raises" : "lowers") + " its registers from " + std::to_string(w.registers) +
                     " to " + std::to_string(count));
  while (w.registers != count && !take_registers(home, w, count)) {
    home.waiting_for_registers.push_back(&t);
    wait_for({.kind = wait_kind::registers, .id = count, .where = where});
  }
  if (!raise) wake_all(home.waiting_for_registers);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
