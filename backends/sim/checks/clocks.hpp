// SPDX-License-Identifier: Apache-2.0
// Vector clocks of the threads of a launch.
//
// Every thread of a block has a clock, and so has everything that accesses memory on behalf of threads and at another
// time: the products of a warpgroup, the copies that a barrier counts. Each has a slot of the block. A thread knows of
// each slot how far it has seen it: an access (slot, clock) comes before what the thread does next if it has seen that
// clock. A thread's own clock advances where others may see what it did, and not between.
#pragma once

#include <octavo/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

using clock_value = std::uint32_t;

/// One access: who, when, and whether it was atomic. 0: none.
struct epoch {
  static constexpr std::uint64_t clock_mask = (1u << 30) - 1;
  static constexpr std::uint64_t atomic_bit = 1u << 30, wrote_bit = 1u << 31;
  static constexpr int slot_at = 32, block_at = 44;
  static constexpr std::uint64_t slot_mask = (1u << 12) - 1, block_mask = (1u << 18) - 1;
  static constexpr std::uint64_t who_mask = block_mask << block_at | slot_mask << slot_at | atomic_bit | wrote_bit;

  static std::uint64_t make(std::int64_t block, int slot, clock_value clock) {
    return (static_cast<std::uint64_t>(block) & block_mask) << block_at | static_cast<std::uint64_t>(slot) << slot_at |
           (clock & clock_mask);
  }
  static std::int64_t block(std::uint64_t e) { return static_cast<std::int64_t>(e >> block_at & block_mask); }
  static std::size_t slot(std::uint64_t e) { return e >> slot_at & slot_mask; }
  static clock_value clock(std::uint64_t e) { return static_cast<clock_value>(e & clock_mask); }
};

inline void join(std::vector<clock_value>& to, const std::vector<clock_value>& from) {
  if (to.size() < from.size()) to.resize(from.size(), 0);
  clock_value* x = to.data();
  const clock_value* y = from.data();
  for (std::size_t i = 0; i < from.size(); ++i) x[i] = std::max(x[i], y[i]);
}

/// What has been seen: of the slots of one's own block, and of other blocks, which only fences and atomics show.
struct vector_clock {
  std::vector<clock_value> own{};
  std::map<std::int64_t, std::vector<clock_value>> others{};

  void join(const vector_clock& from) {
    checks::join(own, from.own);
    for (const auto& [block, clocks] : from.others) checks::join(others[block], clocks);
  }
  void clear() {
    own.clear();
    others.clear();
  }
};

/// What an atomic variable carries from those who wrote it, by block.
using carried_clocks = std::map<std::int64_t, std::vector<clock_value>>;

inline void give(carried_clocks& to, const vector_clock& from, std::int64_t block) {
  join(to[block], from.own);
  for (const auto& [other, clocks] : from.others) join(to[other], clocks);
}
inline void take(vector_clock& to, const carried_clocks& from, std::int64_t block) {
  for (const auto& [other, clocks] : from) join(other == block ? to.own : to.others[other], clocks);
}

/// Who makes an access, and what came before it.
struct actor {
  const vector_clock* seen;
  std::int64_t block;
  std::uint64_t now;  ///< its epoch

  bool comes_after(std::uint64_t e) const {
    const std::vector<clock_value>* clocks = &seen->own;
    if (epoch::block(e) != (block & static_cast<std::int64_t>(epoch::block_mask))) {
      const auto other = seen->others.find(epoch::block(e));
      if (other == seen->others.end()) return false;
      clocks = &other->second;
    }
    const std::size_t slot = epoch::slot(e);
    return slot < clocks->size() && (*clocks)[slot] >= epoch::clock(e);
  }
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
