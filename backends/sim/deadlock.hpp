// SPDX-License-Identifier: Apache-2.0
// Who waits for what, when nothing can go on.
#pragma once

#include <octavo/backends/sim/copies.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <cstring>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline std::string reason_of(block& home, const thread& t) {
  const waiting& w = t.wait;
  const std::string place = " (" + text_of(w.where) + ")";
  switch (w.kind) {
    case wait_kind::collective: {
      const warp& its = home.warp_of(t);
      return std::string("wait at ") + name_of(its) + " for all lanes of their warp: " + std::to_string(its.arrived) +
             " of " + std::to_string(home.warp_lanes) + " have come" + place;
    }
    case wait_kind::barrier: {
      const named_barrier& b = home.barriers[static_cast<std::size_t>(w.id)];
      return "wait at barrier " + std::to_string(w.id) + ": " + std::to_string(b.arrived) + " of " +
             std::to_string(b.expected) + " threads have come" + place;
    }
    case wait_kind::phase: {
      std::uint64_t word;
      std::memcpy(&word, home.shared + w.offset, sizeof word);
      const barrier_word b = barrier_word::decode(word);
      return "wait for the phase of parity " + std::to_string(w.id) + " of " + name_of_barrier(w.offset) + ": " +
             std::to_string(b.expected - b.pending) + " of " + std::to_string(b.expected) + " arrivals have come, " +
             std::to_string(b.bytes) + " bytes are outstanding" + place;
    }
    case wait_kind::products: {
      const warpgroup& g = home.group_of(t);
      const product* p = g.products.empty() ? nullptr : g.products.front().get();
      return "wait for products of their warpgroup: " +
             (p == nullptr ? std::string("none is issued")
                           : "product " + std::to_string(g.first) + " (" + text_of(p->where) + ") has been issued by " +
                                 std::to_string(p->joined) + " of 128 threads") +
             place;
    }
    case wait_kind::registers:
      return "wait for " + std::to_string(w.id) + " registers: " + std::to_string(home.free_registers) +
             " per thread of one warp are free" + place;
    case wait_kind::turn:
      return "wait for turn " + std::to_string(w.number) + ", which stands at " + std::to_string(*w.turn) + place;
    case wait_kind::none:
      break;
  }
  return "run";
}

/// One line for each run of threads that wait for the same.
inline std::string describe_waiters(const machine& m) {
  std::string all;
  for (const auto& home : m.blocks) {
    std::string last;
    int first = 0, previous = -2;
    const auto put = [&] {
      if (last.empty()) return;
      all += "\n  block " + std::to_string(home->index) + ", thread" +
             (first == previous ? " " + std::to_string(first)
                                : "s " + std::to_string(first) + " to " + std::to_string(previous)) +
             ": " + last;
    };
    for (const thread& t : home->threads) {
      const std::string reason = t.finished ? std::string("have returned") : reason_of(*home, t);
      if (reason != last) {
        put();
        first = t.index;
        last = reason;
      }
      previous = t.index;
    }
    put();
  }
  return all;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
