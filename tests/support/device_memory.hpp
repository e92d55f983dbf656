// SPDX-License-Identifier: Apache-2.0
// A backend's memory with poison around it, reached through backend_entry alone, so that host and GPU backends are
// driven alike.
//
// Every byte that is not an input starts as 0xff, which is NaN in every element type: an output that is not written, a
// read beyond an end and a read of uninitialised scratch all end up as NaN in a result. Bytes that nobody may write are
// compared with what they were.
#pragma once

#include <octavo/backend/engine.hpp>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace octavo_tests {

using bytes = std::vector<std::byte>;
inline constexpr std::byte poison{0xff};

/// How simulated devices add up in the runs of tests: exactly, so that what is judged is the kernels' arithmetic, unless
/// a test is about the unit's.
inline octavo::accumulator simulated_sums = octavo::accumulator::ideal;

/// Sums of the unit in the runs of tests, for as long as it lives.
class unit_sums_of_simulators {
 public:
  unit_sums_of_simulators() { simulated_sums = octavo::accumulator::model; }
  ~unit_sums_of_simulators() { simulated_sums = before_; }
  unit_sums_of_simulators(const unit_sums_of_simulators&) = delete;
  unit_sums_of_simulators& operator=(const unit_sums_of_simulators&) = delete;

 private:
  octavo::accumulator before_ = simulated_sums;
};

/// A backend and a queue of its own.
class session {
 public:
  explicit session(const octavo::backend_entry& entry) : entry_(entry), queue_(entry.make_queue()) {
    if (!queue_) throw std::runtime_error(std::string(entry.name) + " made no queue");
    if (entry.simulation.set_accumulator) entry.simulation.set_accumulator(queue_, simulated_sums);
  }
  ~session() { entry_.free_queue(queue_); }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  const octavo::backend_entry& entry() const { return entry_; }
  void* queue() const { return queue_; }
  void synchronise() const { require(entry_.synchronise(queue_)); }

  /// A failure of the machine, not of a test: nothing can be said about the backend.
  static void require(const octavo::status& s) {
    if (!s.ok()) throw std::runtime_error(s.message.c_str());
  }

 private:
  const octavo::backend_entry& entry_;
  void* queue_;
};

/// A run of bytes on the backend between two guards.
class device_memory {
 public:
  device_memory(const session& on, const bytes& body) : on_(&on), sent_(body.size() + 2 * guard, poison) {
    std::copy(body.begin(), body.end(), sent_.begin() + guard);
    data_ = static_cast<std::byte*>(on.entry().memory.allocate(sent_.size()));
    if (!data_) throw std::runtime_error("no memory on " + std::string(on.entry().name));
    session::require(on.entry().memory.to_device(on.queue(), data_, sent_.data(), sent_.size()));
  }
  /// Poison only.
  device_memory(const session& on, std::size_t size) : device_memory(on, bytes(size, poison)) {}
  ~device_memory() {
    if (data_) on_->entry().memory.release(data_);
  }
  device_memory(device_memory&& other) noexcept
      : on_(other.on_), sent_(std::move(other.sent_)), data_(std::exchange(other.data_, nullptr)) {}
  device_memory& operator=(device_memory&&) = delete;

  void* data() const { return data_ + guard; }
  std::size_t size() const { return sent_.size() - 2 * guard; }

  /// The body as it is now. (The queue must be done.)
  bytes fetch() const {
    bytes now = fetch_all();
    return {now.begin() + guard, now.end() - guard};
  }
  /// Whether all bytes but those of the body that `may_write` names (by offset) are what they were.
  template <class MayWrite>
  bool intact(const MayWrite& may_write) const {
    const bytes now = fetch_all();
    for (std::size_t i = 0; i < now.size(); ++i) {
      const bool inside = i >= guard && i < now.size() - guard;
      if (now[i] != sent_[i] && !(inside && may_write(i - guard))) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 256;  // keeps the alignment that allocate promises

  bytes fetch_all() const {
    bytes now(sent_.size());
    session::require(on_->entry().memory.to_host(on_->queue(), now.data(), data_, now.size()));
    return now;
  }

  const session* on_;
  bytes sent_;
  std::byte* data_ = nullptr;
};

}  // namespace octavo_tests
