// SPDX-License-Identifier: Apache-2.0
// What the backends of GPUs share, whatever the vendor: streams, tiles of the generic loops, launches.
#pragma once

#include <octavo/algorithm/scratch.hpp>
#include <octavo/backends/gpu/entry.hpp>
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/gpu/operations.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

/// Self: the backend, which inherits this and has a name(). Units: multiprocessors or compute units of a device; the
/// generic loops take a block on each.
template <class Self, int Units>
struct block_backend : block_operations {
  /// What orders the work: a stream of the current device.
  struct queue {
    stream_t stream = nullptr;
  };
  using context = block_context;
  static constexpr int tile_q = 128;
  static constexpr int tile_kv = 128;
  static constexpr int max_head_dim = 256;

  template <int M, int N>
  using accum = gpu::accum<M, N>;
  template <class E, side S, image I, int R, int C>
  using operand = gpu::operand<E, S, I, R, C>;
  template <int M>
  using row_vector = gpu::row_vector<M>;
  template <int N>
  using col_vector = gpu::col_vector<N>;

  template <class R>
  static constexpr bool computes = !std::is_same_v<R, recipe::exact> && recipe::is_sound<R>;

  static std::size_t scratch_bytes(const problem& p) {
    return 64 + floats_per_block(p) * sizeof(float) * static_cast<std::size_t>(blocks(p));
  }

  template <class Kernel>
  static status launch(queue& on, const problem& p, void* scratch, std::int64_t items, const Kernel& kernel) {
    return gpu::launch(on.stream, scratch, floats_per_block(p), blocks(p), items, kernel, Self::name());
  }
  /// A kernel of the schedules.
  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return gpu::launch_blocks(on.stream, kernel, Units, Self::name());
  }

 private:
  static std::size_t floats_per_block(const problem& p) { return (tile_floats<Self>(p, 32) + 31) / 32 * 32; }
  static int blocks(const problem& p) {
    const std::int64_t items = tile_items<Self>(p);
    return static_cast<int>(items < 1 ? 1 : items < Units ? items : Units);
  }
};

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
