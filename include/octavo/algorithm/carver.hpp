// SPDX-License-Identifier: Apache-2.0
// How a pass divides the caller's workspace.
#pragma once

#include <octavo/config.hpp>

#include <cstddef>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace detail {

/// Hands out parts of the workspace, each aligned; over a null base it only counts. One code for the
/// size and for the layout. The caller's memory may start anywhere: `alignment` bytes are counted for that.
class carver {
 public:
  static constexpr std::size_t alignment = 64;

  explicit carver(void* base) : base_(static_cast<std::uint8_t*>(base)) {
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(base) % alignment;
    if (beyond != 0) base_ += alignment - beyond;
  }

  template <class T>
  T* take(std::int64_t count) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + alignment - 1) / alignment * alignment;
    return base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at);
  }
  std::size_t used() const { return used_ + alignment; }

 private:
  std::uint8_t* base_;
  std::size_t used_ = 0;
};

}  // namespace detail
OCTAVO_END_NAMESPACE
