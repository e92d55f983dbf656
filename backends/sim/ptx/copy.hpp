// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/copy.hpp on the host. A copy happens at some time from its issue to when nothing else can go on;
// until then its destination holds 0xff.
#pragma once

#include <octavo/backends/sim/copies.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/proxy.hpp>
#include <octavo/backends/sim/ptx/device.hpp>
#include <octavo/backends/sim/warpgroup.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

struct alignas(8) shared_barrier {
  std::uint64_t word;

  void init(int arrivals, const sim::site where = sim::site::current()) { sim::init_barrier(this, arrivals, where); }
  void arrive(const sim::site where = sim::site::current()) { sim::arrive_at(this, 0, where); }
  void arrive_expecting(int bytes, const sim::site where = sim::site::current()) { sim::arrive_at(this, bytes, where); }
  void wait(int parity, const sim::site where = sim::site::current()) { sim::wait_phase(this, parity, where); }
};

inline void fence_barriers() { sim::fence_initialised_barriers(); }
inline void fence_async() {
  const sim::checks::unchecked here;
  sim::maybe_yield();
  sim::thread& t = sim::this_thread();
  for (const std::uint32_t piece : t.unfenced)
    if (std::uint16_t& writer = t.home->unfenced[piece]; writer == t.index + 1) writer = 0;
  t.unfenced.clear();
  ++t.home->fences;
}

namespace detail {

/// Begins a copy of `bytes` to shared memory; what it copies is the caller's to say.
inline sim::bulk_copy& begin_copy(void* to, int bytes, const shared_barrier& arrived, const sim::site& where) {
  sim::machine& m = sim::the_machine();
  sim::thread& t = *m.current;
  sim::block& home = *t.home;
  const std::uint32_t offset = sim::offset_in(home, to, static_cast<std::size_t>(bytes), where, "a copy's destination");
  if (offset % 16 != 0) sim::fault(where, "copies to offset " + std::to_string(offset) + ": not 16-byte aligned");
  const std::uint32_t barrier = sim::barrier_offset(&arrived, where);
  sim::load_barrier(home, barrier, where);
  if (!home.phases[barrier].fenced)
    sim::fault(where, "copies with " + sim::name_of_barrier(barrier) + ", whose init no fence_barriers has followed");
  for (const sim::bulk_copy& c : m.copies)
    if (c.home == &home && c.to < offset + static_cast<std::uint32_t>(bytes) &&
        offset < c.to + static_cast<std::uint32_t>(c.bytes))
      sim::fault(where, "copies to offset " + std::to_string(offset) + " while another copy to there is under way (" +
                            sim::text_of(c.where) + ")");
  if (const sim::product* p = sim::reader_of(home, offset, bytes); p != nullptr)
    sim::fault(where, "copies to offset " + std::to_string(offset) +
                          ", which a product that nothing has waited for may still read (" + sim::text_of(p->where) +
                          ")");
  for (const auto& [at, waiters] : home.phases)
    if (at < offset + static_cast<std::uint32_t>(bytes) && offset < at + 8)
      sim::fault(where, "copies over " + sim::name_of_barrier(at));
  std::memset(home.shared + offset, 0xff, static_cast<std::size_t>(bytes));
  sim::publish(home, offset, bytes);
  const sim::access filling = sim::fill_pieces(home, t, offset, bytes, barrier, where);
  m.copies.push_back({&home, offset, nullptr, bytes, barrier, t.index, where, filling.agent, filling.time});
  ++m.report.bulk_copies;
  m.report.bulk_bytes += bytes;
  return m.copies.back();
}

}  // namespace detail

inline void bulk_load(void* to, const void* from, int bytes, shared_barrier& arrived,
                      const sim::site where = sim::site::current()) {
  const sim::checks::unchecked here;
  sim::maybe_yield();
  const sim::block& home = *sim::this_thread().home;
  if (bytes <= 0 || bytes % 16 != 0)
    sim::fault(where, "copies " + std::to_string(bytes) + " bytes: not a multiple of 16 above 0");
  if (reinterpret_cast<std::uintptr_t>(from) % 16 != 0) sim::fault(where, "copies from where is not 16-byte aligned");
  const auto source = reinterpret_cast<std::uintptr_t>(from), shared = reinterpret_cast<std::uintptr_t>(home.shared);
  if (source >= shared && source < shared + static_cast<std::size_t>(home.shared_bytes))
    sim::fault(where, "copies from shared memory, which bulk_load does not");
  sim::bulk_copy& copy = detail::begin_copy(to, bytes, arrived, where);
  copy.from = static_cast<const char*>(from);
  if constexpr (sim::checks::on)
    copy.number = sim::checks::issue_copy(copy.barrier, {to, static_cast<std::size_t>(bytes)},
                                          {from, static_cast<std::size_t>(bytes)}, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
