// SPDX-License-Identifier: Apache-2.0
// The CPU backend: the generic loops on FP32 tiles that hold FP8 payloads. Bit for bit the arithmetic of the numerics
// (every rounding to FP8 happens), FP32 sums, deterministic whatever the number of threads.
#pragma once

#include <octavo/algorithm/passes.hpp>
#include <octavo/algorithm/scratch.hpp>
#include <octavo/backends/cpu/launch.hpp>
#include <octavo/backends/cpu/operations.hpp>

OCTAVO_BEGIN_CPU_NAMESPACE

struct cpu : generic_passes, cpu_detail::operations {
  using queue = cpu_detail::queue;
  using context = cpu_detail::context;
  static constexpr int tile_q = cpu_detail::cpu_tuning::tile_q;
  static constexpr int tile_kv = cpu_detail::cpu_tuning::tile_kv;
  static constexpr int max_head_dim = 256;

  template <int M, int N>
  using accum = cpu_detail::accum<M, N>;
  template <class E, side S, image I, int R, int C>
  using operand = cpu_detail::operand<E, S, I, R, C>;
  template <int M>
  using row_vector = cpu_detail::row_vector<M>;
  template <int N>
  using col_vector = cpu_detail::col_vector<N>;

  /// Every recipe but `exact`, which is float64.
  template <class R>
  static constexpr bool computes = !std::is_same_v<R, recipe::exact> && recipe::is_sound<R>;

  static constexpr const char* name() { return "cpu"; }
  static text unavailable() { return {}; }
  static text device() {
    return text("CPU, ") << cpu_detail::hardware_threads() << " threads, vectors of " << cpu_detail::width << " floats";
  }

  static std::size_t scratch_bytes(const problem& p) {
    return bytes_per_worker(p) * static_cast<std::size_t>(workers(p));
  }
  template <class Kernel>
  static status launch(queue& on, const problem& p, void* scratch, std::int64_t items, const Kernel& kernel) {
    const cpu_detail::arena tiles{static_cast<std::byte*>(scratch), bytes_per_worker(p), workers(p)};
    cpu_detail::launch(on, tiles, items, kernel);
    return {};
  }

 private:
  /// Each tile may be padded to a cache line, 16 floats.
  static std::size_t bytes_per_worker(const problem& p) { return tile_floats<cpu>(p, 16) * sizeof(float); }
  /// No more than the machine has threads, nor than there are tiles.
  static int workers(const problem& p) {
    const std::int64_t items = tile_items<cpu>(p), threads = cpu_detail::hardware_threads();
    return static_cast<int>(items < 1 ? 1 : items < threads ? items : threads);
  }
};

static_assert(require_backend<cpu>::value);

OCTAVO_END_CPU_NAMESPACE
