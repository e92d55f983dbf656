// SPDX-License-Identifier: Apache-2.0
// The simulated device while a launch runs: which thread runs, how it waits, how a fault ends the launch.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/backends/sim/options.hpp>
#include <octavo/backends/sim/state.hpp>
#include <octavo/config.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// splitmix64: small, and the same everywhere.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((next() >> 32) * n >> 32); }

 private:
  std::uint64_t state_;
};

struct machine;
/// Operations of one thread that end in the order of issue (tasks.hpp).
struct task {
  site where;
  std::function<void(machine&)> run;
};
struct task_queue {
  block* home;
  int issuer;
  std::deque<task> tasks;
};

struct machine {
  sim::options options;
  sim::report report{};
  random_source random;
  void (*body)(const void*) = nullptr;
  const void* kernel = nullptr;
  const char* kernel_name = nullptr;

  std::vector<std::unique_ptr<block>> blocks{};
  std::deque<thread*> ready{};
  std::vector<bulk_copy> copies{};
  std::vector<task_queue> tasks{};
  std::vector<thread*> waiting_for_turn{};
  thread* current = nullptr;
  fiber scheduler{};
  std::exception_ptr failure{};

  explicit machine(const sim::options& o) : options(o), random(o.seed) {}
  bool ordered() const { return options.seed == 0; }
  /// Never with seed 0.
  bool one_in(std::size_t n) { return !ordered() && random.below(n) == 0; }
};

inline machine*& active_machine() {
  static thread_local machine* active = nullptr;
  return active;
}

inline machine& the_machine() {
  machine* m = active_machine();
  if (m == nullptr || m->current == nullptr)
    throw std::logic_error("an instruction of the GPU was reached outside of sim::launch");
  return *m;
}
inline thread& this_thread() { return *the_machine().current; }

inline std::string name_of(const thread& t) {
  return "thread " + std::to_string(t.index) + " (warp " + std::to_string(t.index / t.home->warp_lanes) + ", lane " +
         std::to_string(t.lane()) + ") of block " + std::to_string(t.home->index);
}

/// Ends the launch: from a thread of the kernel by way of run_thread, which catches it.
[[noreturn]] inline void fault(const std::string& sentence) {
  const machine* m = active_machine();
  const bool in_kernel = m != nullptr && m->current != nullptr;
  const std::string kernel = m != nullptr && m->kernel_name != nullptr ? m->kernel_name + std::string(": ") : "";
  throw std::runtime_error("sim: " + kernel + (in_kernel ? name_of(*m->current) + " " : std::string()) + sentence);
}
/// The same, with the place in the kernel.
[[noreturn]] inline void fault(const site& where, const std::string& sentence) {
  fault("(" + text_of(where) + ") " + sentence);
}

/// The running thread stops until something wakes it.
inline void wait_for(const waiting& reason) {
  const checks::quiet_of_fiber keep;
  machine& m = the_machine();
  thread& t = *m.current;
  t.wait = reason;
  switch_fiber(t, m.scheduler);
}
inline void wake(thread& t) {
  const checks::unchecked here;
  t.wait.kind = wait_kind::none;
  active_machine()->ready.push_back(&t);
}
/// A place where other threads may come first; they do so only where a seed draws it.
inline void maybe_yield() {
  const checks::unchecked here;
  machine& m = the_machine();
  if (!m.one_in(8)) return;
  thread& t = *m.current;
  m.ready.push_back(&t);
  const checks::quiet_of_fiber keep;
  switch_fiber(t, m.scheduler);
}

/// Wakes those whose turn has come.
inline bool poll_turns(machine& m) {
  const checks::unchecked here;
  return std::erase_if(m.waiting_for_turn, [](thread* t) {
           const bool come = *t->wait.turn == t->wait.number;
           if (come) wake(*t);
           return come;
         }) > 0;
}

/// Where p stands in the block's shared memory; a fault if `bytes` from there on are not in it.
inline std::uint32_t offset_in(const block& b, const void* p, std::size_t bytes, const site& where, const char* what) {
  const auto at = reinterpret_cast<std::uintptr_t>(p), first = reinterpret_cast<std::uintptr_t>(b.shared);
  if (at < first || at - first + bytes > static_cast<std::size_t>(b.shared_bytes))
    fault(where, std::string(what) + " is outside of the block's " + std::to_string(b.shared_bytes) +
                     " bytes of shared memory: " + std::to_string(bytes) + " bytes at offset " +
                     std::to_string(static_cast<std::intptr_t>(at - first)));
  return static_cast<std::uint32_t>(at - first);
}

inline const char* name_of(collective_kind kind) {
  switch (kind) {
    case collective_kind::sync_warp:
      return "sync_warp";
    case collective_kind::shuffle:
      return "shuffle_xor";
    case collective_kind::maximum:
      return "max_over_warp";
    case collective_kind::any:
      return "any_in_warp";
    case collective_kind::instruction:
      return "an instruction";
    case collective_kind::store:
      return "store_transposed";
    case collective_kind::together:
      return "mma";
    case collective_kind::sync_block:
      return "sync_block";
    case collective_kind::sync_named:
      return "sync_named";
    case collective_kind::arrive_named:
      return "arrive_named";
    case collective_kind::registers:
      return "raise_registers or lower_registers";
    case collective_kind::none:
      break;
  }
  return "nothing";
}

inline const char* name_of(const warp& w) { return w.what.name != nullptr ? w.what.name : name_of(w.kind); }

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
