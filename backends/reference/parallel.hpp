// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work on threads that live as long as the call.
#pragma once

#include <octavo/config.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// work(0), ..., work(count - 1) on up to `threads` threads, the caller's among them (0: as many as the machine has).
/// Pieces write to different places, so that the result does not depend on who does what.
template <class Work>
void for_each(std::int64_t count, int threads, const Work& work) {
  std::atomic<std::int64_t> next{0};
  const auto worker = [&] {
    for (std::int64_t i; (i = next.fetch_add(1)) < count;) work(i);
  };
  const std::int64_t wanted = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < std::min(wanted, count); ++t) helpers.emplace_back(worker);
  worker();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
