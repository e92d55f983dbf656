// SPDX-License-Identifier: Apache-2.0
// Threads of the CPU backend: workers that take items in order, on the caller's executor or on threads of their own
// that end with the call. There is no pool.
#pragma once

#include <octavo/algorithm/mask.hpp>
#include <octavo/backends/cpu/tile.hpp>
#include <octavo/backends/cpu/tuning.hpp>
#include <octavo/tensor/documents.hpp>

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

/// Bytes of tiles that one worker needs: the sum over the tiles of the backward, the largest kernel.
inline std::size_t worker_bytes(const problem& p) {
  const std::int64_t d = p.d_qk > p.d_v ? p.d_qk : p.d_v;
  const std::int64_t m = tile_extent(p.packed ? p.total_q : p.s_q, cpu_tuning::tile_q);
  const std::int64_t n = tile_extent(p.packed ? p.total_kv : p.s_kv, cpu_tuning::tile_kv);
  const std::int64_t values = (5 * m + 7 * n) * d + 6 * m * n + 16 * (m + n);
  constexpr std::int64_t tiles = 64;  // each may be padded to a cache line
  return static_cast<std::size_t>(values) * sizeof(float) + tiles * 64;
}

/// Workers that a workspace has room for: no more than the machine has threads, nor than there are tiles.
inline int workspace_workers(const problem& p) {
  const std::int64_t q =
      (p.packed ? p.total_q / cpu_tuning::tile_q + p.b + 1 : p.b * ceil_div(p.s_q, cpu_tuning::tile_q)) * p.h_q;
  const std::int64_t kv =
      (p.packed ? p.total_kv / cpu_tuning::tile_kv + p.b + 1 : p.b * ceil_div(p.s_kv, cpu_tuning::tile_kv)) * p.h_kv;
  const std::int64_t items = q > kv ? q : kv;
  const int threads = hardware_threads();
  return items < 1 ? 1 : items < threads ? static_cast<int>(items) : threads;
}

/// Runs kernel(context, item) for all items; scratch has worker_bytes for each of workspace_workers (null: the kernel
/// takes no tiles).
template <class Kernel>
void launch(const queue& on, const problem& p, void* scratch, std::int64_t items, const Kernel& kernel) {
  struct state {
    const Kernel& kernel;
    std::byte* scratch;
    std::size_t bytes;
    std::int64_t items;
    std::atomic<std::int64_t> next{0};
    std::atomic<int> worker{0};

    void work() {
      const int me = worker.fetch_add(1);
      context ctx(scratch + (scratch == nullptr ? 0 : static_cast<std::size_t>(me) * bytes),
                  scratch == nullptr ? 0 : bytes);
      for (std::int64_t item; (item = next.fetch_add(1)) < items;) {
        ctx.reset();
        kernel(ctx, item);
      }
    }
  };
  state shared{kernel, static_cast<std::byte*>(scratch), worker_bytes(p), items};
  int workers = on.threads > 0 ? on.threads : hardware_threads();
  if (const int room = workspace_workers(p); workers > room) workers = room;
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
