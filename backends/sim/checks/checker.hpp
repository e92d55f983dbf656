// SPDX-License-Identifier: Apache-2.0
// Looks at every access to shared and to global memory that a simulated thread makes: races, reads of shared memory
// that nothing has written, accesses out of bounds, vectors that are not aligned. For one source of a program, which
// callbacks.hpp makes.
#pragma once

#include <octavo/backends/sim/checks/block_state.hpp>
#include <octavo/backends/sim/checks/clocks.hpp>
#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/backends/sim/checks/places.hpp>
#include <octavo/backends/sim/checks/shadow.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <link.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

/// The thread that runs, as far as every access asks.
struct running_thread {
  std::uintptr_t stack = 0;
  std::size_t stack_bytes = SIZE_MAX;  ///< all memory is the stack of what is no thread of a kernel
  std::uintptr_t shared = 0;
  std::size_t shared_bytes = 0;
};
inline constinit thread_local running_thread running{};

/// A piece of global memory that a kernel may access.
struct buffer {
  std::uintptr_t begin, end;
  std::unique_ptr<shadow> memory;
};

class checker {
 public:
  explicit checker(const launch_description& d) : about_(d) {
    std::vector<range> sorted(d.buffers, d.buffers + d.buffer_count);
    std::erase_if(sorted, [](const range& r) { return r.bytes == 0; });
    std::sort(sorted.begin(), sorted.end(), [](const range& x, const range& y) { return x.begin < y.begin; });
    for (const range& r : sorted) {
      const auto begin = reinterpret_cast<std::uintptr_t>(r.begin), end = begin + r.bytes;
      if (!buffers_.empty() && begin < buffers_.back().end)
        buffers_.back().end = std::max(buffers_.back().end, end);
      else
        buffers_.push_back({begin, end, nullptr});
    }
    for (buffer& b : buffers_)
      b.memory = std::make_unique<shadow>(b.end - (b.begin & ~std::uintptr_t{3}), d.races, false);
    if (!buffers_.empty()) find_memory_of_program();
  }

  void begin_block(const block_description& b) {
    blocks_.emplace(b.index, std::make_unique<block_state>(b, about_.races));
    shape_ = b;
  }
  void end_block(std::int64_t index) {
    if (current_ != nullptr && current_->about.index == index) current_ = nullptr;
    blocks_.erase(index);
  }
  void enter(std::int64_t block, int thread, const void* stack, std::size_t stack_bytes) {
    if (current_ == nullptr || current_->about.index != block) current_ = blocks_.at(block).get();
    thread_ = thread;
    running = {reinterpret_cast<std::uintptr_t>(stack), stack_bytes,
               reinterpret_cast<std::uintptr_t>(current_->about.shared.begin), current_->about.shared.bytes};
    who_ = current_->actor_of(thread);
  }

  // ---- accesses ----

  /// What the compiler's calls come to, the running thread's stack aside.
  void access_at(std::uintptr_t p, std::size_t bytes, bool writes, std::uint64_t at) {
    if (p - running.shared < running.shared_bytes && p - running.shared + bytes <= running.shared_bytes) {
      const clash found = current_->memory.check(p - running.shared, bytes, writes, who_, at);
      if (found.what != finding::none) complain(found, p, bytes, writes, who_.now, at);
      return;
    }
    if (const buffer* b = buffer_at(p); b != nullptr && p + bytes <= b->end) {
      const clash found = b->memory->check(p - (b->begin & ~std::uintptr_t{3}), bytes, writes, who_, at);
      if (found.what != finding::none) complain(found, p, bytes, writes, who_.now, at);
      return;
    }
    check_elsewhere(p, bytes, writes, at);
  }

  void check_aligned(std::uintptr_t p, std::size_t alignment, std::uint64_t at) {
    if (p % alignment == 0 || is_private(p)) return;
    fail(at, "accesses " + std::to_string(alignment) + " bytes at once at " + name_of(p) +
                 ", which is not a multiple of " + std::to_string(alignment));
  }
  const char* last_writer(std::uint32_t offset) {
    const clash found = current_->memory.last_write(offset);
    writer_ = found.other == 0 ? "" : name_of_access(found.other) + " (" + places_.text(found.other_at) + ")";
    return writer_.c_str();
  }
  /// Whether it is no memory that threads share.
  bool is_private(std::uintptr_t p) { return p - running.shared >= running.shared_bytes && buffer_at(p) == nullptr; }

  void atomic_access(std::uintptr_t p, std::size_t bytes, bool writes, bool both, order how, std::uint64_t at) {
    const actor plain = who_;
    who_.now |= epoch::atomic_bit;
    access_at(p, bytes, writes, at);
    who_ = plain;
    if (how == order::none || p - running.stack < running.stack_bytes) return;
    thread_state& t = current_->threads[static_cast<std::size_t>(thread_)];
    carried_clocks& carried = carried_[p];
    if (!writes || both) {
      if (how == order::acquire || how == order::acquire_release)
        take(t.seen, carried, current_->about.index);
      else
        for (const auto& [block, clocks] : carried) join(t.loaded[block], clocks);
    }
    if (writes) {
      if (!both) carried.clear();  // an exchange or addition carries on what the last writer gave, a store does not
      const bool releases = how == order::release || how == order::acquire_release;
      if (releases)
        give(carried, t.seen, current_->about.index);
      else if (!t.fenced.own.empty())
        give(carried, t.fenced, current_->about.index);
      if (releases) advance();
    }
  }

  void fence() {
    thread_state& t = current_->threads[static_cast<std::size_t>(thread_)];
    take(t.seen, t.loaded, current_->about.index);
    t.loaded.clear();
    t.fenced = t.seen;
    advance();
  }

  // ---- order in a block ----

  void warp_barrier(int first_thread) {
    vector_clock all;
    const int end = first_thread + current_->about.warp_lanes;
    for (int t = first_thread; t < end; ++t) current_->release(t, all);
    for (int t = first_thread; t < end; ++t) current_->acquire(t, all);
    renew();
  }
  void arrive_at_barrier(int id, int first_thread) {
    vector_clock& barrier = current_->named[static_cast<std::size_t>(id)];
    for (int t = first_thread; t < first_thread + current_->about.warp_lanes; ++t) current_->release(t, barrier);
    renew();
  }
  void leave_barrier(int id, int thread) {
    current_->acquire(thread, current_->named[static_cast<std::size_t>(id)]);
    renew();
  }
  void end_barrier(int id) { current_->named[static_cast<std::size_t>(id)].clear(); }

  void arrive_at_phase(std::uint32_t barrier) {
    current_->release(thread_, current_->phase(barrier).gathering);
    renew();
  }
  void end_phase(std::int64_t block, std::uint32_t barrier) {
    phase_state& phase = blocks_.at(block)->phase(barrier);
    phase.ended = phase.gathering;
    phase.gathering.clear();
  }
  void leave_phase(std::uint32_t barrier) { current_->acquire(thread_, current_->phase(barrier).ended); }

  // ---- what is done for a block at another time ----

  /// The copy reads and writes after what its issuer has done or seen, and before what sees the barrier's phase.
  std::uint32_t issue_copy(std::uint32_t barrier, const range& to, const range& from, std::uint64_t at) {
    phase_state& phase = current_->phase(barrier);
    const clock_value copy = ++phase.copies;
    act_as(epoch::make(current_->about.index, phase.slot, copy), [&] {
      if (from.bytes > 0) access_at(reinterpret_cast<std::uintptr_t>(from.begin), from.bytes, false, at);
      access_at(reinterpret_cast<std::uintptr_t>(to.begin), to.bytes, true, at);
    });
    return copy;
  }
  void finish_copy(std::int64_t block, std::uint32_t barrier, std::uint32_t copy) {
    phase_state& phase = blocks_.at(block)->phase(barrier);
    phase.gather(phase.slot, copy);
  }

  /// An operation of the tensor cores comes after what its issuer has done or seen.
  std::uint32_t issue_tensor_operation() { return ++current_->tensor_cores_of(thread_).copies; }
  void tensor_operation_reads(std::uint32_t offset, std::size_t bytes, std::uint64_t at) {
    const phase_state& unit = current_->tensor_cores_of(thread_);
    act_as(epoch::make(current_->about.index, unit.slot, unit.copies),
           [&] { access_at(running.shared + offset, bytes, false, at); });
  }
  /// A commit: what it tells of later is what the operations came after, and themselves; of what the thread did since it
  /// last came to a barrier, nothing.
  void commit_tensor_operations(std::uint32_t number) {
    vector_clock& before = current_->tensor_cores_of(thread_).commits[number];
    before = current_->threads[static_cast<std::size_t>(thread_)].seen;
    --before.own[static_cast<std::size_t>(thread_)];
  }
  void finish_tensor_operations(std::int64_t block, int thread, std::uint32_t number, std::uint32_t barrier) {
    block_state& b = *blocks_.at(block);
    phase_state& unit = b.tensor_cores_of(thread);
    phase_state& phase = b.phase(barrier);
    phase.gathering.join(unit.commits[number]);
    phase.gather(unit.slot, number);
    unit.commits.erase(number);
  }

  /// A product comes after what all threads of the warpgroup have seen.
  void begin_product(int group, std::uint32_t number) {
    const int first = group * about_group();
    product_.own = current_->threads[static_cast<std::size_t>(first)].seen.own;
    for (int t = first + 1; t < first + about_group(); ++t) {
      const std::vector<clock_value>& seen = current_->threads[static_cast<std::size_t>(t)].seen.own;
      product_.own.resize(std::min(product_.own.size(), seen.size()));
      for (std::size_t slot = 0; slot < product_.own.size(); ++slot)
        product_.own[slot] = std::min(product_.own[slot], seen[slot]);
    }
    product_now_ = epoch::make(current_->about.index, current_->group_slot(group), number);
  }
  void product_reads(std::uint32_t offset, std::size_t bytes, std::uint64_t at) {
    act_as(product_now_, [&] { access_at(running.shared + offset, bytes, false, at); }, &product_);
  }
  void wait_products(int group, std::uint32_t count) {
    clock_value& seen = current_->threads[static_cast<std::size_t>(thread_)]
                            .seen.own[static_cast<std::size_t>(current_->group_slot(group))];
    seen = std::max(seen, count);
  }

  std::uint64_t place_of(const std::source_location& where) { return places_.of(where); }
  [[noreturn]] void fail_outside(const std::string& sentence) { fail_with(sentence); }

 private:
  int about_group() const { return current_->about.group_threads; }

  void renew() { who_ = current_->actor_of(thread_); }
  void advance() {
    current_->advance(thread_);
    renew();
  }
  template <class Function>
  void act_as(std::uint64_t now, Function function, const vector_clock* seen = nullptr) {
    const actor thread = who_;
    who_.now = now;
    if (seen != nullptr) who_.seen = seen;
    function();
    who_ = thread;
  }

  buffer* buffer_at(std::uintptr_t p) {
    if (last_ != nullptr && p >= last_->begin && p < last_->end) return last_;
    const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), p,
                                        [](std::uintptr_t x, const buffer& b) { return x < b.begin; });
    if (after == buffers_.begin() || p >= (after - 1)->end) return nullptr;
    return last_ = &*(after - 1);
  }

  static bool in(std::uintptr_t p, const range& r) { return p - reinterpret_cast<std::uintptr_t>(r.begin) < r.bytes; }

  /// Neither shared memory nor, from one end to the other, a buffer.
  void check_elsewhere(std::uintptr_t p, std::size_t bytes, bool writes, std::uint64_t at) {
    if (in(p, about_.machine) || in(p, current_->about.threads_at) || in(p, current_->about.block_at)) return;
    const auto out_of_bounds = [&](const std::string& place) {
      fail(at, (writes ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " + place + ": out of bounds");
    };
    for (const auto& [index, block] : blocks_)
      if (in(p, block->about.allocated) || in(p + bytes - 1, block->about.allocated)) out_of_bounds(name_of(p, *block));
    if (buffers_.empty()) return;
    if (buffer_at(p) != nullptr || buffer_at(p + bytes - 1) != nullptr) out_of_bounds(name_of(p));
    for (const range& r : of_program_)
      if (in(p, r)) return;
    if (in(p, about_.kernel_object)) return;
    out_of_bounds(name_of(p));
  }

  /// Constants and variables of the program and the stack of whoever launched: arguments and tables of a kernel.
  void find_memory_of_program() {
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
          auto& ranges = *static_cast<std::vector<range>*>(to);
          for (int i = 0; i < object->dlpi_phnum; ++i) {
            const auto& part = object->dlpi_phdr[i];
            if (part.p_type == PT_LOAD)
              ranges.push_back({reinterpret_cast<const void*>(object->dlpi_addr + part.p_vaddr), part.p_memsz});
            if (part.p_type == PT_TLS && object->dlpi_tls_data != nullptr)
              ranges.push_back({object->dlpi_tls_data, part.p_memsz});
          }
          return 0;
        },
        &of_program_);
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      void* bottom = nullptr;
      std::size_t size = 0;
      pthread_attr_getstack(&attributes, &bottom, &size);
      pthread_attr_destroy(&attributes);
      of_program_.push_back({bottom, size});
    }
  }

  // ---- faults ----

  static std::string name_of(std::uintptr_t p, const block_state& block) {
    const auto offset = static_cast<std::intptr_t>(p - reinterpret_cast<std::uintptr_t>(block.about.shared.begin));
    return "offset " + std::to_string(offset) + " of the " + std::to_string(block.about.shared.bytes) +
           " bytes of shared memory";
  }
  std::string name_of(std::uintptr_t p) {
    if (current_ != nullptr && p - running.shared < running.shared_bytes) return name_of(p, *current_);
    // The buffer that holds it, or the nearest one before or behind.
    const auto after = std::upper_bound(buffers_.begin(), buffers_.end(), p,
                                        [](std::uintptr_t x, const buffer& b) { return x < b.begin; });
    auto nearest = after == buffers_.begin() ? after : after - 1;
    if (nearest != buffers_.end() && after != buffers_.end() && p >= nearest->end &&
        after->begin - p < p - nearest->end)
      nearest = after;
    if (nearest == buffers_.end()) return "an address that is no buffer's";
    return "offset " + std::to_string(static_cast<std::intptr_t>(p - nearest->begin)) + " of global buffer " +
           std::to_string(nearest - buffers_.begin()) + " (" + std::to_string(nearest->end - nearest->begin) +
           " bytes)";
  }
  std::string name_of_access(std::uint64_t e) {
    const auto block = blocks_.find(epoch::block(e));
    return block != blocks_.end() ? block->second->name_of(e) : block_state::name_of_slot(e, shape_, nullptr);
  }

  void complain(const clash& found, std::uintptr_t p, std::size_t bytes, bool writes, std::uint64_t now,
                std::uint64_t at) {
    const std::string what = (writes ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " + name_of(p);
    if (found.what == finding::never_written) fail_as(now, at, what + ", which nothing has written");
    fail_as(now, at,
            what + ", which " + name_of_access(found.other) +
                (found.what == finding::race_with_write ? " writes (" : " reads (") + places_.text(found.other_at) +
                "): a race, nothing orders the two");
  }
  [[noreturn]] void fail(std::uint64_t at, const std::string& sentence) { fail_as(who_.now, at, sentence); }
  [[noreturn]] void fail_as(std::uint64_t now, std::uint64_t at, const std::string& sentence) {
    fail_with(name_of_access(now) + " (" + places_.text(at) + ") " + sentence);
  }
  [[noreturn]] void fail_with(const std::string& sentence) {
    about_.fail((about_.kernel != nullptr ? about_.kernel + (": " + sentence) : sentence).c_str());
    std::abort();  // fail does not return
  }

  launch_description about_;
  std::string writer_{};
  block_description shape_{};
  std::vector<buffer> buffers_{};
  buffer* last_ = nullptr;
  std::vector<range> of_program_{};
  std::map<std::int64_t, std::unique_ptr<block_state>> blocks_{};
  std::map<std::uintptr_t, carried_clocks> carried_{};  ///< of atomic variables
  block_state* current_ = nullptr;
  int thread_ = 0;
  actor who_{};
  vector_clock product_{};
  std::uint64_t product_now_ = 0;
  places places_{};
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
