// SPDX-License-Identifier: Apache-2.0
// Kernels with a planted fault, and their mended twins. A fault's text must name the lines of both accesses, which the
// kernels note when they come by. (Not within the arguments of a macro, whose lines are all one.)
#pragma once

#include <octavo/backends/sim/atomics.hpp>
#include <octavo/backends/sim/exchange.hpp>
#include <octavo/backends/sim/global_memory.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/sim/support.hpp"

namespace sim_checked {

namespace ptx = octavo::backends::ptx;
namespace sim = octavo::backends::sim;
using sim_test::has;

template <int lanes, int kernel_threads, int kernel_shared_bytes, class Function>
struct kernel {
  static constexpr const char* name = "planted";
  static constexpr int threads = kernel_threads;
  static constexpr int shared_bytes = kernel_shared_bytes;
  static constexpr int warp_lanes = lanes;
  Function function;
  std::int64_t count;
  std::int64_t blocks() const { return count; }
  void operator()() const { function(); }
};

struct shape {
  std::int64_t blocks = 1;
  int resident = 1;
};

/// What the kernel is stopped with by any of some seeds: all must find the same kind of fault, since what is wrong does
/// not hang on who came first.
template <int lanes = 32, int threads = 64, int shared_bytes = 1024, class Function>
std::vector<std::string> faults_of(Function function, shape of = {}, std::vector<sim::checks::range> buffers = {}) {
  std::vector<std::string> all;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::string fault;
    try {
      sim::launch(sim_checked::kernel<lanes, threads, shared_bytes, Function>{function, of.blocks},
                  {.seed = seed, .resident = of.resident, .buffers = buffers});
    } catch (const std::runtime_error& e) {
      fault = e.what();
    }
    all.push_back(fault);
  }
  return all;
}

inline bool all_empty(const std::vector<std::string>& faults) {
  for (const std::string& f : faults)
    if (!f.empty()) {
      MESSAGE(f);
      return false;
    }
  return true;
}
/// A part of a fault's text: words, or the number of a line, which is known when the kernel has run.
inline bool names(const std::string& fault, const char* words) { return has(fault, words); }
inline bool names(const std::string& fault, const int& line) {
  return has(fault, ".cpp:" + std::to_string(line) + ")");
}
/// Whether every text has every part.
template <class... Parts>
bool all_have(const std::vector<std::string>& faults, const Parts&... parts) {
  for (const std::string& f : faults)
    if (!(names(f, parts) && ...)) return false;
  return true;
}

inline int thread() { return ptx::thread_index(); }
/// Shared memory as an array.
template <class T>
T* shared(int offset = 0) {
  return reinterpret_cast<T*>(ptx::shared_memory() + offset);
}

}  // namespace sim_checked
