// SPDX-License-Identifier: Apache-2.0
// The global memory of the simulated device: what has been allocated, for the checker to tell what is out of bounds.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/config.hpp>

#include <cstddef>
#include <mutex>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// Pieces of memory that every launch of this program may access. Nothing is recorded in programs that check nothing.
class global_memory {
 public:
  static void add(const void* begin, std::size_t bytes) {
    if constexpr (checks::on) {
      const std::lock_guard lock(known().mutex);
      known().ranges.push_back({begin, bytes});
    }
  }
  static void remove(const void* begin) {
    if constexpr (checks::on) {
      const std::lock_guard lock(known().mutex);
      std::erase_if(known().ranges, [&](const checks::range& r) { return r.begin == begin; });
    }
  }
  static void append_to(std::vector<checks::range>& ranges) {
    const std::lock_guard lock(known().mutex);
    ranges.insert(ranges.end(), known().ranges.begin(), known().ranges.end());
  }

 private:
  struct list {
    std::mutex mutex;
    std::vector<checks::range> ranges;
  };
  static list& known() {
    static list all;
    return all;
  }
};

/// Allows accesses to a piece of memory while it lives.
class global_buffer {
 public:
  global_buffer(const void* begin, std::size_t bytes) : begin_(begin) { global_memory::add(begin, bytes); }
  ~global_buffer() { global_memory::remove(begin_); }
  global_buffer(const global_buffer&) = delete;
  global_buffer& operator=(const global_buffer&) = delete;

 private:
  const void* begin_;
};

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
