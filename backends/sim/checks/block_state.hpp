// SPDX-License-Identifier: Apache-2.0
// A resident block as the checker knows it: the clocks of its threads, of its barriers and of what works for it
// asynchronously, and the shadow of its shared memory.
#pragma once

#include <octavo/backends/sim/checks/clocks.hpp>
#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/backends/sim/checks/shadow.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

struct thread_state {
  vector_clock seen{};
  clock_value clock = 1;
  vector_clock fenced{};    ///< `seen` at the last fence, which atomic writes after it carry
  carried_clocks loaded{};  ///< what atomic reads have found since the last fence
};

/// A barrier in shared memory.
struct phase_state {
  vector_clock gathering{};  ///< of the arrivals and copies of the phase under way
  vector_clock ended{};      ///< of the last phase
  int slot = 0;              ///< of its copies
  clock_value copies = 0;
  std::map<clock_value, vector_clock> commits{};  ///< of tensor cores: under way, by their number

  void gather(int of, clock_value time) {
    const auto at = static_cast<std::size_t>(of);
    if (gathering.own.size() <= at) gathering.own.resize(at + 1, 0);
    gathering.own[at] = std::max(gathering.own[at], time);
  }
};

struct block_state {
  static constexpr int group_slots = 8, named_barriers = 16;

  block_description about;
  std::vector<thread_state> threads;
  std::array<vector_clock, named_barriers> named{};
  std::map<std::uint32_t, phase_state> phases{};
  std::vector<std::uint32_t> phase_at{};  ///< offsets of barriers, in the order of their slots
  shadow memory;

  block_state(const block_description& b, bool races)
      : about(b), threads(static_cast<std::size_t>(b.threads)), memory(b.shared.bytes, races, true) {
    for (std::size_t t = 0; t < threads.size(); ++t) {
      threads[t].seen.own.assign(threads.size() + group_slots, 0);
      threads[t].seen.own[t] = threads[t].clock;
    }
  }

  std::uint64_t epoch_of(int thread) const {
    return epoch::make(about.index, thread, threads[static_cast<std::size_t>(thread)].clock);
  }
  actor actor_of(int thread) const {
    return {&threads[static_cast<std::size_t>(thread)].seen, about.index, epoch_of(thread)};
  }
  int group_slot(int group) const { return about.threads + group; }

  /// `to` learns of all that the thread did up to here.
  void release(int thread, vector_clock& to) {
    to.join(threads[static_cast<std::size_t>(thread)].seen);
    advance(thread);
  }
  void advance(int thread) {
    thread_state& t = threads[static_cast<std::size_t>(thread)];
    t.seen.own[static_cast<std::size_t>(thread)] = ++t.clock;
  }
  void acquire(int thread, const vector_clock& from) { threads[static_cast<std::size_t>(thread)].seen.join(from); }

  phase_state& phase(std::uint32_t offset) {
    const auto [at, made] = phases.try_emplace(offset);
    if (made) {
      at->second.slot = about.threads + group_slots + static_cast<int>(phase_at.size());
      phase_at.push_back(offset);
    }
    return at->second;
  }

  /// The tensor cores have a slot for each thread that issues to them, beside those of barriers.
  static constexpr std::uint32_t tensor_cores = 1u << 31;
  phase_state& tensor_cores_of(int thread) { return phase(tensor_cores | static_cast<std::uint32_t>(thread)); }

  std::string name_of(std::uint64_t e) const { return name_of_slot(e, about, &phase_at); }

  /// Who made an access, also where the block has ended and its barriers are not known any more.
  static std::string name_of_slot(std::uint64_t e, const block_description& b,
                                  const std::vector<std::uint32_t>* barriers) {
    const int slot = static_cast<int>(epoch::slot(e));
    const std::string block = " of block " + std::to_string(epoch::block(e));
    if (slot < b.threads) return name_of_thread(slot, b.warp_lanes) + block;
    if (slot < b.threads + group_slots) return "a product of warpgroup " + std::to_string(slot - b.threads) + block;
    const auto number = static_cast<std::size_t>(slot - b.threads - group_slots);
    if (barriers != nullptr && number < barriers->size() && (*barriers)[number] >= tensor_cores)
      return "an operation of the tensor cores, issued by thread " +
             std::to_string((*barriers)[number] - tensor_cores) + block;
    return "a copy" + block +
           (barriers != nullptr && number < barriers->size()
                ? " that the barrier at offset " + std::to_string((*barriers)[number]) + " counts"
                : "");
  }
  static std::string name_of_thread(int thread, int warp_lanes) {
    return "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / warp_lanes) + ", lane " +
           std::to_string(thread % warp_lanes) + ")";
  }
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
