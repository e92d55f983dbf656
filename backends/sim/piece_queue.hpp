// SPDX-License-Identifier: Apache-2.0
// The 16-byte copies that a thread has under way, in the groups that it closed (cp.async).
#pragma once

#include <octavo/config.hpp>

#include <cstddef>
#include <cstring>
#include <deque>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

class piece_queue {
 public:
  static constexpr std::size_t bytes = 16;

  void start(char* to, const char* from) {
    std::memset(to, 0xff, bytes);
    open_.push_back({to, from});
  }
  void commit() {
    groups_.push_back(open_);
    open_.clear();
  }
  /// All groups but the `pending` youngest arrive.
  void wait(int pending) {
    while (groups_.size() > static_cast<std::size_t>(pending)) {
      for (const piece& p : groups_.front()) std::memcpy(p.to, p.from, bytes);
      groups_.pop_front();
    }
  }
  /// The oldest group arrives by itself.
  void arrive_early() {
    if (!groups_.empty()) wait(static_cast<int>(groups_.size()) - 1);
  }
  bool empty() const {
    for (const auto& group : groups_)
      if (!group.empty()) return false;
    return open_.empty();
  }

 private:
  struct piece {
    char* to;
    const char* from;
  };
  std::deque<piece> open_{};
  std::deque<std::deque<piece>> groups_{};
};

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
