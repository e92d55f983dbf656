// SPDX-License-Identifier: Apache-2.0
// The trace hook: how a program observes which main loops ran. Without it, nothing is compiled in.
#pragma once

#include <octavo/config.hpp>

#include <mutex>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE

/// The names of the main loops that ran since the last clear, each once, in order of first use.
class trace_log {
 public:
  static void add(const char* main_loop) {
    const std::lock_guard lock(instance().mutex_);
    for (const std::string& seen : instance().loops_)
      if (seen == main_loop) return;
    instance().loops_.emplace_back(main_loop);
  }
  static std::vector<std::string> loops() {
    const std::lock_guard lock(instance().mutex_);
    return instance().loops_;
  }
  static void clear() {
    const std::lock_guard lock(instance().mutex_);
    instance().loops_.clear();
  }

 private:
  static trace_log& instance() {
    static trace_log log;
    return log;
  }
  std::mutex mutex_;
  std::vector<std::string> loops_;
};

/// The backend B with its main loops reported to trace_log. Use it in place of B in a config.
template <class B>
struct traced : B {
  static void trace(const char* main_loop) { trace_log::add(main_loop); }
};

OCTAVO_END_NAMESPACE
