// SPDX-License-Identifier: Apache-2.0
// Which asynchronous operations a thread knows to have ended. Whoever performs them is an agent: the loads and the
// stores of tensor memory of each warp, the products and copies that a thread issues to the tensor cores, the bulk
// copies that a barrier in shared memory counts. An agent numbers its operations; a clock holds, for each agent, up to
// which number they are known to have ended. A clock travels with arrivals and waits: what the threads know that come to
// a barrier is known to those who leave it. So an operation that touches what another has not been waited for is found
// in whatever order the two happen to run.
#pragma once

#include <octavo/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <source_location>
#include <utility>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

class clock {
 public:
  std::uint32_t of(int agent) const {
    const auto at = static_cast<std::size_t>(agent);
    return at < times_.size() ? times_[at] : 0;
  }
  void raise(int agent, std::uint32_t time) {
    const auto at = static_cast<std::size_t>(agent);
    if (at >= times_.size()) times_.resize(at + 1, 0);
    times_[at] = std::max(times_[at], time);
  }
  void join(const clock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size(), 0);
    for (std::size_t at = 0; at < other.times_.size(); ++at) times_[at] = std::max(times_[at], other.times_[at]);
  }
  void clear() { times_.clear(); }

 private:
  std::vector<std::uint32_t> times_{};
};

/// What one thread knows.
struct knowledge {
  clock heard{};  ///< by its barriers; goes on to others with its next arrival
  clock
      known{};  ///< to its own instructions on tensor memory: what it waited for itself, and heard before its last fence
};

/// The agents of a block.
struct agents {
  enum kind {
    loads,
    stores,
    tensor_cores,
    copies,
    products
  };  ///< by warp, warp, thread, offset of the barrier, warpgroup

  std::map<std::pair<kind, std::uint32_t>, int> numbers{};
  std::vector<std::uint32_t> issued{};          ///< operations of each
  std::vector<std::source_location> last_at{};  ///< where the last one was

  int of(kind what, std::uint32_t whose) {
    const auto [at, added] = numbers.try_emplace({what, whose}, static_cast<int>(issued.size()));
    if (added) {
      issued.push_back(0);
      last_at.emplace_back();
    }
    return at->second;
  }
  std::uint32_t next(int agent, const std::source_location& where) {
    last_at[static_cast<std::size_t>(agent)] = where;
    return ++issued[static_cast<std::size_t>(agent)];
  }
  std::uint32_t last(int agent) const { return issued[static_cast<std::size_t>(agent)]; }
};

enum class tensor_use { none, load, store, product, copy_scales, bulk_copy };

/// One operation that read or wrote a place.
struct access {
  int agent = -1;
  std::uint32_t time = 0;
  tensor_use use = tensor_use::none;
  std::uint64_t chain = 0;  ///< of products that follow each other into the same accumulators; else 0
  std::source_location where{};

  bool ended_for(const clock& of) const { return agent < 0 || of.of(agent) >= time; }
};

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
