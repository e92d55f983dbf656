// SPDX-License-Identifier: Apache-2.0
// Barriers in shared memory (mbarrier) and the bulk copies that they count.
//
// The word of a barrier holds its whole state, as the device's does (with a layout of its own): what overwrites it is
// seen. A phase ends when no arrival and no byte is outstanding; the word is then set up for the next phase.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

struct barrier_word {
  static constexpr std::uint32_t count_limit = (1u << 20) - 1;  ///< of arrivals, and of bytes outstanding
  std::uint32_t pending, expected;
  std::int32_t bytes;
  int phase;  ///< parity of the phase under way

  static barrier_word decode(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word & count_limit), static_cast<std::uint32_t>(word >> 20 & count_limit),
            static_cast<std::int32_t>(word >> 40 & 0x3fffff) - (1 << 21), static_cast<int>(word >> 62 & 1)};
  }
  std::uint64_t encode() const {
    return pending | static_cast<std::uint64_t>(expected) << 20 | static_cast<std::uint64_t>(bytes + (1 << 21)) << 40 |
           static_cast<std::uint64_t>(phase) << 62;
  }
};

inline std::string name_of_barrier(std::uint32_t offset) { return "the barrier at offset " + std::to_string(offset); }

inline barrier_word load_barrier(const block& home, std::uint32_t offset, const site& where) {
  std::uint64_t word;
  std::memcpy(&word, home.shared + offset, sizeof word);
  const barrier_word barrier = barrier_word::decode(word);
  if (home.phases.count(offset) == 0) fault(where, "uses " + name_of_barrier(offset) + ", which is not initialised");
  if (word >> 63 != 0 || barrier.pending > barrier.expected || barrier.expected == 0)
    fault(where, "finds " + name_of_barrier(offset) + " overwritten");
  return barrier;
}

/// Stores the barrier's new state; ends the phase where it is due.
inline void store_barrier(block& home, std::uint32_t offset, barrier_word barrier, const site& where) {
  if (barrier.pending == 0 && barrier.bytes == 0) {
    phase_waiters& waiters = home.phases[offset];
    if (waiters.not_resumed > 0)
      fault(where, "ends another phase of " + name_of_barrier(offset) + " before " +
                       std::to_string(waiters.not_resumed) +
                       " threads that wait for the last one have seen its end: on the device they may miss it");
    ++active_machine()->report.phases;
    waiters.ended.join(waiters.coming);
    waiters.coming.clear();
    if constexpr (checks::on) checks::end_phase(home.index, offset);
    const int ended = barrier.phase;
    barrier.phase ^= 1;
    barrier.pending = barrier.expected;
    const auto stays = std::partition(waiters.waiting.begin(), waiters.waiting.end(),
                                      [&](const thread* t) { return t->wait.id != ended; });
    for (auto t = stays; t != waiters.waiting.end(); ++t, ++waiters.not_resumed) wake(**t);
    waiters.waiting.erase(stays, waiters.waiting.end());
  }
  const std::uint64_t word = barrier.encode();
  std::memcpy(home.shared + offset, &word, sizeof word);
}

inline std::uint32_t barrier_offset(const void* barrier, const site& where) {
  const std::uint32_t offset = offset_in(*this_thread().home, barrier, 8, where, "a barrier");
  if (offset % 8 != 0)
    fault(where, "uses a barrier at offset " + std::to_string(offset) + ", which is not a multiple of 8");
  return offset;
}

inline void init_barrier(const void* at, int arrivals, const site& where) {
  const checks::unchecked here;
  block& home = *this_thread().home;
  const std::uint32_t offset = barrier_offset(at, where);
  if (arrivals < 1 || static_cast<std::uint32_t>(arrivals) > barrier_word::count_limit)
    fault(where, "initialises " + name_of_barrier(offset) + " for " + std::to_string(arrivals) + " arrivals");
  if (home.phases.count(offset) != 0) fault(where, "initialises " + name_of_barrier(offset) + " for a second time");
  home.phases[offset].initialiser = this_thread().index;
  if constexpr (checks::on) checks::plain_access(at, 8, checks::access::write, where);
  const auto count = static_cast<std::uint32_t>(arrivals);
  const std::uint64_t word = barrier_word{count, count, 0, 0}.encode();
  std::memcpy(home.shared + offset, &word, sizeof word);
}

inline void fence_initialised_barriers() {
  const checks::unchecked here;
  const thread& t = this_thread();
  for (auto& [offset, waiters] : t.home->phases)
    if (waiters.initialiser == t.index) waiters.fenced = true;
}

/// An arrival, after which the phase waits for `bytes` more of copies.
inline void arrive_at(const void* at, int bytes, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  block& home = *this_thread().home;
  const std::uint32_t offset = barrier_offset(at, where);
  barrier_word barrier = load_barrier(home, offset, where);
  if (barrier.pending == 0)
    fault(where, "arrives at " + name_of_barrier(offset) + " when all " + std::to_string(barrier.expected) +
                     " arrivals of the phase have come and " + std::to_string(barrier.bytes) +
                     " bytes are outstanding");
  if (bytes < 0 || barrier.bytes + bytes > static_cast<std::int32_t>(barrier_word::count_limit))
    fault(where, "makes " + name_of_barrier(offset) + " expect " + std::to_string(bytes) +
                     " bytes: more than it can count (1048575)");
  if constexpr (checks::on) {
    checks::atomic_access(at, 8, checks::access::write, true, checks::order::none, where);
    checks::arrive_at_phase(offset);
  }
  barrier.bytes += bytes;
  --barrier.pending;
  home.phases[offset].coming.join(this_thread().order.heard);
  store_barrier(home, offset, barrier, where);
}

/// Waits until the phase of this parity has ended: it has where the phase under way is of the other.
inline void wait_phase(const void* at, int parity, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  thread& t = this_thread();
  block& home = *t.home;
  const std::uint32_t offset = barrier_offset(at, where);
  if (parity != 0 && parity != 1) fault(where, "waits for a phase of parity " + std::to_string(parity));
  if constexpr (checks::on) checks::atomic_access(at, 8, checks::access::read, false, checks::order::none, where);
  const barrier_word barrier = load_barrier(home, offset, where);
  phase_waiters& waiters = home.phases[offset];
  if (barrier.phase == parity) {
    waiters.waiting.push_back(&t);
    wait_for({.kind = wait_kind::phase, .id = parity, .offset = offset, .where = where});
    --waiters.not_resumed;
  }
  t.order.heard.join(waiters.ended);
  if constexpr (checks::on) checks::leave_phase(offset);
}

/// The asynchronous units see these bytes as they are.
inline void publish(block& home, std::uint32_t offset, int bytes) {
  std::fill_n(home.unfenced.begin() + offset / 16, bytes / 16, std::uint16_t{0});
  std::fill_n(home.published_at.begin() + offset / 16, bytes / 16, home.fences);
  std::memcpy(&home.published[offset], home.shared + offset, static_cast<std::size_t>(bytes));
}

/// The copy happens, and is counted.
inline void finish_copy(machine& m, std::size_t which) {
  const bulk_copy c = m.copies[which];
  m.copies.erase(m.copies.begin() + static_cast<std::ptrdiff_t>(which));
  if (c.gather)
    c.gather(c.home->shared + c.to);
  else
    std::memcpy(c.home->shared + c.to, c.from, static_cast<std::size_t>(c.bytes));
  publish(*c.home, c.to, c.bytes);
  if constexpr (checks::on) checks::finish_copy(c.home->index, c.barrier, c.number);
  barrier_word barrier = load_barrier(*c.home, c.barrier, c.where);
  c.home->phases[c.barrier].coming.raise(c.agent, c.time);
  barrier.bytes -= c.bytes;
  if (barrier.bytes < -static_cast<std::int32_t>(barrier_word::count_limit))
    fault(c.where, "copied more bytes than " + name_of_barrier(c.barrier) + " can count");
  store_barrier(*c.home, c.barrier, barrier, c.where);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
