// SPDX-License-Identifier: Apache-2.0
// The 16-byte copies that a thread has under way, in the groups that it closed (cp.async).
//
// To the checker the thread writes the destination twice, when it starts a piece and when its wait covers it: what others
// do to it in between has no order with the second.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/config.hpp>

#include <cstddef>
#include <cstring>
#include <deque>
#include <source_location>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

class piece_queue {
 public:
  static constexpr std::size_t bytes = 16;

  void start(char* to, const char* from, const std::source_location& where) {
    note_write(to, where);
    std::memset(to, 0xff, bytes);
    open_.push_back({to, from, where});
  }
  void commit() {
    const checks::unchecked here;
    groups_.push_back(open_);
    open_.clear();
  }
  /// All groups but the `pending` youngest arrive.
  void wait(int pending) {
    const checks::unchecked here;
    while (groups_.size() > static_cast<std::size_t>(pending)) {
      for (const piece& p : groups_.front()) {
        note_write(p.to, p.where);
        std::memcpy(p.to, p.from, bytes);
      }
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
    std::source_location where;
  };

  static void note_write(const char* to, const std::source_location& where) {
    if constexpr (checks::on) checks::plain_access(to, bytes, checks::access::write, where);
  }

  std::deque<piece> open_{};
  std::deque<std::deque<piece>> groups_{};
};

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
