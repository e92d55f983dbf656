// SPDX-License-Identifier: Apache-2.0
// Runs a kernel for Hopper on the host, its instructions modelled one by one, on one thread of the program:
//
//     sim::report r = sim::launch(kernel, {.seed = 1, .accumulator = sim::accumulation::model});
//
// Throws std::runtime_error with a sentence for a fault that the kernel would have on the device, among them those that
// a device shows only sometimes. Link boost_context.
#pragma once

#include <octavo/backends/sim/copies.hpp>
#include <octavo/backends/sim/deadlock.hpp>
#include <octavo/backends/sim/exchange.hpp>
#include <octavo/backends/sim/global_memory.hpp>
#include <octavo/backends/sim/instruction.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/options.hpp>
#include <octavo/backends/sim/tasks.hpp>
#include <octavo/backends/sim/tensor_cores.hpp>
#include <octavo/backends/sim/tensor_memory.hpp>
#include <octavo/backends/sim/warpgroup.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {
namespace detail {

/// A thread may return only where nothing of it is under way.
inline void check_return(thread& t) {
  const checks::unchecked here;
  block& home = *t.home;
  warp& w = home.warp_of(t);
  if (w.arrived > 0)
    fault(w.where, std::string("returns from the kernel while lane ") + std::to_string(w.first_lane) +
                       " of its warp is at " + name_of(w));
  if (!home.barriers[0].waiting.empty()) fault("returns from the kernel while others wait at sync_block");
  if (t.issued > t.waited)
    fault("returns from the kernel with " + std::to_string(t.issued - t.waited) +
          " products of its warpgroup that it has not waited for");
  if (!t.pieces.empty()) fault("returns from the kernel with pieces of 16 bytes under way that it has not waited for");
  ++w.finished;
  ++home.finished;
}

inline void run_thread(boost::context::detail::transfer_t came) {
  arrive_in_fiber(came);
  machine& m = *active_machine();
  thread& t = *m.current;
  try {
    m.body(m.kernel);
    check_return(t);
  } catch (...) {
    m.failure = std::current_exception();
  }
  t.finished = true;
  switch_fiber(t, m.scheduler, true);
}

inline std::unique_ptr<block> make_block(std::int64_t index, int threads, int shared_bytes, int warp_lanes) {
  auto b = std::make_unique<block>();
  b->index = index;
  b->shared_bytes = shared_bytes;
  b->warp_lanes = warp_lanes;
  const std::size_t size = static_cast<std::size_t>(shared_bytes);
  b->memory = std::make_unique<char[]>(size + 1024 + canary_bytes);
  b->shared = b->memory.get() + (1024 - reinterpret_cast<std::uintptr_t>(b->memory.get()) % 1024) % 1024;
  std::memset(b->shared, 0xff, size);
  std::memset(b->shared + size, 0xa5, canary_bytes - 1024);
  b->threads = std::vector<thread>(static_cast<std::size_t>(threads));
  b->warps.resize(static_cast<std::size_t>(threads / warp_lanes));
  b->groups = std::vector<warpgroup>(static_cast<std::size_t>((threads + group_lanes - 1) / group_lanes));
  b->unfenced.assign(size / 16 + 1, 0);
  b->published.assign(b->shared, b->shared + size + 16);
  b->published_at.assign(size / 16 + 1, 0);
  for (warp& w : b->warps) w.registers = std::min(65536 / threads / 8 * 8, 256);
  return b;
}

inline void start_block(machine& m, std::int64_t index, int threads, int shared_bytes, int warp_lanes) {
  m.blocks.push_back(make_block(index, threads, shared_bytes, warp_lanes));
  block& b = *m.blocks.back();
  if constexpr (checks::on)
    checks::begin_block({.index = index,
                         .threads = threads,
                         .warp_lanes = warp_lanes,
                         .group_threads = group_lanes,
                         .shared = {b.shared, static_cast<std::size_t>(shared_bytes)},
                         .allocated = {b.memory.get(), static_cast<std::size_t>(shared_bytes) + 1024 + canary_bytes},
                         .threads_at = {b.threads.data(), b.threads.size() * sizeof(thread)},
                         .block_at = {&b, sizeof(block)}});
  for (int i = 0; i < threads; ++i) {
    thread& t = b.threads[static_cast<std::size_t>(i)];
    t.home = &b;
    t.index = i;
    t.start(run_thread);
    m.ready.push_back(&t);
  }
  for (warp& w : b.warps) w.priority = m.ordered() ? 0 : m.random.next();
  ++m.report.blocks;
  m.report.most_resident = std::max(m.report.most_resident, static_cast<int>(m.blocks.size()));
}

inline void end_block(machine& m, block& b) {
  for (const bulk_copy& c : m.copies)
    if (c.home == &b)
      fault("block " + std::to_string(b.index) + " ended while a copy to offset " + std::to_string(c.to) +
            " was under way (" + text_of(c.where) + ")");
  check_products_ended(b);
  check_tensor_memory_freed(b);
  const char* canary = b.shared + b.shared_bytes;
  if (!std::all_of(canary, canary + canary_bytes - 1024, [](char c) { return c == static_cast<char>(0xa5); }))
    fault("block " + std::to_string(b.index) + " wrote behind the end of its shared memory");
  if constexpr (checks::on) checks::end_block(b.index);
  m.blocks.erase(std::find_if(m.blocks.begin(), m.blocks.end(), [&](const auto& p) { return p.get() == &b; }));
}

/// The thread to run next. With odd seeds, warps have priorities that change now and then.
inline thread& take_ready(machine& m) {
  if (!m.ordered()) {
    const auto priority = [](const thread* t) { return t->home->warp_of(*t).priority; };
    std::size_t best = m.random.below(m.ready.size());
    for (int tries = m.options.seed % 2 == 1 ? 3 : 0; tries > 0; --tries)
      if (const std::size_t other = m.random.below(m.ready.size()); priority(m.ready[other]) > priority(m.ready[best]))
        best = other;
    if (m.one_in(256)) m.ready[best]->home->warp_of(*m.ready[best]).priority = m.random.next();
    std::swap(m.ready[best], m.ready.front());
  }
  thread& t = *m.ready.front();
  m.ready.pop_front();
  return t;
}

/// What happens by itself, at a time that nobody knows.
inline void draw_events(machine& m) {
  if (!m.copies.empty() && m.one_in(32)) finish_copy(m, m.random.below(m.copies.size()));
  if (!m.tasks.empty() && m.one_in(16)) run_task(m, m.random.below(m.tasks.size()));
  if (m.one_in(64)) {
    block& b = *m.blocks[m.random.below(m.blocks.size())];
    run_products_early(m, b, b.groups[m.random.below(b.groups.size())]);
  }
}

inline void run_ready(machine& m) {
  thread& t = take_ready(m);
  ++m.report.switches;
  m.current = &t;
  if constexpr (checks::on) checks::enter_thread(t.home->index, t.index, t.memory.bottom, stack_bytes);
  switch_fiber(m.scheduler, t);
  if constexpr (checks::on) checks::enter_scheduler();
  m.current = nullptr;
  if (m.failure) std::rethrow_exception(m.failure);
  if (!t.finished) return;
  t.release();
  if (t.home->finished == static_cast<int>(t.home->threads.size())) end_block(m, *t.home);
}

inline void run_all(machine& m, std::int64_t blocks, int threads, int shared_bytes, int warp_lanes) {
  std::int64_t next = 0;
  const auto start_next = [&] { start_block(m, next++, threads, shared_bytes, warp_lanes); };
  for (;;) {
    while (next < blocks && static_cast<int>(m.blocks.size()) < m.options.resident) start_next();
    if (m.blocks.empty()) return;
    draw_events(m);
    if (m.blocks.empty()) continue;
    if (!m.ready.empty()) {
      run_ready(m);
    } else if (poll_turns(m)) {
      continue;
    } else if (!m.copies.empty()) {
      finish_copy(m, m.ordered() ? 0 : m.random.below(m.copies.size()));
    } else if (!m.tasks.empty()) {
      run_task(m, m.ordered() ? 0 : m.random.below(m.tasks.size()));
    } else if (!m.waiting_for_turn.empty() && next < blocks &&
               static_cast<int>(m.blocks.size()) < m.options.resident_limit) {
      start_next();
    } else {
      fault("deadlock" + describe_waiters(m));
    }
  }
}

/// Ends the launch from within a checked access. It may stand in a function that the compiler takes for one that throws
/// nothing, so the thread is left where it is.
inline void fail_in_thread(const char* sentence) {
  machine& m = *active_machine();
  m.failure = std::make_exception_ptr(std::runtime_error(std::string("sim: ") + sentence));
  if (m.current == nullptr) std::rethrow_exception(m.failure);
  switch_fiber(*m.current, m.scheduler);
}

inline void begin_checks(const machine& m, checks::range kernel) {
  std::vector<checks::range> buffers = m.options.buffers;
  global_memory::append_to(buffers);
  checks::begin_launch({.kernel = m.kernel_name,
                        .buffers = buffers.data(),
                        .buffer_count = buffers.size(),
                        .kernel_object = kernel,
                        .machine = {&m, sizeof m},
                        .races = m.options.check_races,
                        .fail = fail_in_thread});
}

/// Makes the machine the one that instructions find, and puts all back at the end.
struct activation {
  explicit activation(machine& m) : m_(m), before_(active_machine()) { active_machine() = &m; }
  ~activation() {
    for (const auto& b : m_.blocks)
      for (thread& t : b->threads) t.release();
    active_machine() = before_;
    if constexpr (checks::on) checks::end_launch();
  }
  activation(const activation&) = delete;
  activation& operator=(const activation&) = delete;

 private:
  machine& m_;
  machine* before_;
};

}  // namespace detail

/// A kernel's own name, or that of its class without namespaces and arguments.
template <class Kernel>
const char* name_of_kernel() {
  if constexpr (requires { Kernel::name; }) {
    return Kernel::name;
  } else {
    static const std::string name = [] {
      int error = 0;
      char* const full = abi::__cxa_demangle(typeid(Kernel).name(), nullptr, nullptr, &error);
      std::string text = error == 0 ? full : "kernel";
      std::free(full);
      text = text.substr(0, text.find('<'));
      const std::size_t scope = text.rfind("::");
      return scope == std::string::npos ? text : text.substr(scope + 2);
    }();
    return name.c_str();
  }
}

/// Lanes of a kernel's warps: its own warp_lanes, or its machine's lanes, or 32.
template <class Kernel>
constexpr int warp_lanes_of() {
  if constexpr (requires { Kernel::warp_lanes; })
    return Kernel::warp_lanes;
  else if constexpr (requires { Kernel::machine::lanes; })
    return Kernel::machine::lanes;
  else
    return lanes;
}

/// Runs all blocks of a kernel to their end. Its members: threads, shared_bytes (static), blocks() or
/// blocks(multiprocessors), operator()().
template <class Kernel>
report launch(const Kernel& kernel, const options& how = {}) {
  static_assert(warp_lanes_of<Kernel>() == 32 || warp_lanes_of<Kernel>() == 64, "a warp has 32 lanes or 64");
  static_assert(Kernel::threads % warp_lanes_of<Kernel>() == 0 && Kernel::threads > 0 && Kernel::threads <= 1024,
                "a block is whole warps, and at most 1024 threads");
  static_assert(Kernel::shared_bytes >= 0 && Kernel::shared_bytes <= most_shared_bytes,
                "a block of Hopper has at most 227 KB of shared memory");
  machine m(how);
  m.body = [](const void* k) { (*static_cast<const Kernel*>(k))(); };
  m.kernel = &kernel;
  m.kernel_name = name_of_kernel<Kernel>();
  m.report.shared_bytes = Kernel::shared_bytes;
  m.report.races_checked = checks::on && how.check_races;
  const detail::activation active(m);
  if constexpr (checks::on) detail::begin_checks(m, {&kernel, sizeof kernel});
  std::int64_t blocks;
  if constexpr (requires { kernel.blocks(how.multiprocessors); })
    blocks = kernel.blocks(how.multiprocessors);
  else
    blocks = kernel.blocks();
  detail::run_all(m, blocks, Kernel::threads, Kernel::shared_bytes, warp_lanes_of<Kernel>());
  return m.report;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
