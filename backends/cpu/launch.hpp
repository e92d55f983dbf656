// SPDX-License-Identifier: Apache-2.0
// Threads of the CPU backend: workers that take items in order, on the caller's executor or on threads of their own
// that end with the call. There is no pool.
#pragma once

#include <octavo/backends/cpu/tile.hpp>
#include <octavo/backends/cpu/tuning.hpp>

#include <atomic>
#include <thread>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

inline constexpr int max_workers = 256;

/// What orders the work of a call: a number of threads, or the caller's own executor.
struct queue {
  int threads = 0;  ///< 0: as many as the machine has
  /// Runs work(argument) `workers` times, side by side or one after another, and returns when all are done.
  using executor_function = void (*)(void* user, int workers, void (*work)(void*), void* argument);
  executor_function executor = nullptr;  ///< null: the call starts and joins its own threads
  void* user = nullptr;
};

inline int hardware_threads() {
  const int n = static_cast<int>(std::thread::hardware_concurrency());
  return n < 1 ? 1 : n > max_workers ? max_workers : n;
}

/// The workers' tiles in the caller's workspace.
struct arena {
  std::byte* memory = nullptr;  ///< null: the kernel takes no tiles
  std::size_t bytes_per_worker = 0;
  int workers = max_workers;  ///< that it has room for
};

/// Runs kernel(context, item) for all items, started in order.
template <class Kernel>
void launch(const queue& on, const arena& tiles, std::int64_t items, const Kernel& kernel) {
  struct state {
    const Kernel& kernel;
    const arena& tiles;
    std::int64_t items;
    std::atomic<std::int64_t> next{0};
    std::atomic<int> worker{0};

    void work() {
      const int me = worker.fetch_add(1);
      const bool has_tiles = tiles.memory != nullptr;
      context ctx(has_tiles ? tiles.memory + static_cast<std::size_t>(me) * tiles.bytes_per_worker : nullptr,
                  has_tiles ? tiles.bytes_per_worker : 0);
      for (std::int64_t item; (item = next.fetch_add(1)) < items;) {
        ctx.reset();
        kernel(ctx, item);
      }
    }
  };
  state shared{kernel, tiles, items};
  int workers = on.threads > 0 ? on.threads : hardware_threads();
  if (workers > tiles.workers) workers = tiles.workers;
  if (items < workers) workers = static_cast<int>(items);

  if (on.executor != nullptr) {
    on.executor(on.user, workers, [](void* s) { static_cast<state*>(s)->work(); }, &shared);
    return;
  }
  std::thread threads[max_workers];
  int started = 0;
  for (; started < workers - 1; ++started) {
#if defined(__cpp_exceptions)
    try {
      threads[started] = std::thread([&shared] { shared.work(); });
    } catch (...) {  // no more threads to be had: those there are do all of the work
      break;
    }
#else
    threads[started] = std::thread([&shared] { shared.work(); });
#endif
  }
  shared.work();
  for (int t = 0; t < started; ++t) threads[t].join();
}

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
