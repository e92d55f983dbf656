// SPDX-License-Identifier: Apache-2.0
// A backend at work: its queue and its memory, owned.
#pragma once

#include <octavo/engines.hpp>

#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "exit.hpp"
#include "options.hpp"

namespace cli {

/// The entry of that name, which the options have checked. Exit code 3 where it is not compiled or has no device.
const octavo::backend_entry& runnable_backend(const std::string& name);

/// The same, with the options that only some backends take: exit code 2 where this one does not.
const octavo::backend_entry& runnable_backend(const engine_options& options);

/// The engine that was asked for. Exit code 3, with what there is, where the backend has no such engine.
const octavo::engine& find_engine(const octavo::backend_entry& entry, const engine_options& options);

/// Why there is no such engine.
std::string no_engine_reason(const octavo::backend_entry& entry, const engine_options& options);

/// Memory of a backend.
class buffer {
 public:
  buffer() = default;
  /// At least one byte, so that a tensor without elements still has an address.
  buffer(const octavo::backend_entry& entry, std::size_t bytes) : release_(entry.memory.release), bytes_(bytes) {
    data_ = entry.memory.allocate(bytes > 0 ? bytes : 1);
    if (data_ == nullptr) throw std::bad_alloc();
  }
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~buffer() {
    if (data_ != nullptr) release_(data_);
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  float* floats() const { return static_cast<float*>(data_); }

 private:
  void swap(buffer& other) {
    std::swap(data_, other.data_);
    std::swap(release_, other.release_);
    std::swap(bytes_, other.bytes_);
  }
  void* data_ = nullptr;
  void (*release_)(void*) = nullptr;
  std::size_t bytes_ = 0;
};

/// A backend with a queue of its own.
class device {
 public:
  explicit device(const octavo::backend_entry& entry, const engine_options& options = {})
      : entry_(entry), queue_(entry.make_queue()) {
    if (queue_ == nullptr) failed("backend " + std::string(entry.name) + " gave no queue");
    if (!options.accumulator.empty())
      entry.simulation.set_accumulator(
          queue_, options.accumulator == "model" ? octavo::accumulator::model : octavo::accumulator::ideal);
  }
  ~device() { entry_.free_queue(queue_); }
  device(const device&) = delete;
  device& operator=(const device&) = delete;

  const octavo::backend_entry& entry() const { return entry_; }
  void* queue() const { return queue_; }
  std::string name() const { return std::string(entry_.device().view()); }

  buffer allocate(std::size_t bytes) const { return buffer(entry_, bytes); }
  buffer upload(const void* host, std::size_t bytes) const {
    buffer out(entry_, bytes);
    if (bytes > 0) require(entry_.memory.to_device(queue_, out.data(), host, bytes));
    return out;
  }
  void download(void* host, const buffer& from) const {
    if (from.bytes() > 0) require(entry_.memory.to_host(queue_, host, from.data(), from.bytes()));
  }
  /// What its kernels did so far, or null where they are not simulated.
  const std::vector<octavo::kernel_counts>* kernels() const {
    return entry_.simulation.kernels == nullptr ? nullptr : &entry_.simulation.kernels(queue_);
  }
  void synchronise() const { require(entry_.synchronise(queue_)); }

 private:
  const octavo::backend_entry& entry_;
  void* queue_;
};

}  // namespace cli
