// SPDX-License-Identifier: Apache-2.0
// What the backends of all architectures are but for their schedules: operations by thread blocks for the generic loops,
// a stream, launches, the question whether the current device is one.
#pragma once

#include <octavo/algorithm/scratch.hpp>
#include <octavo/backends/cuda/common/entry.hpp>
#include <octavo/backends/cuda/common/launch.hpp>
#include <octavo/backends/cuda/common/operations.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// Me: name(), architecture() (in words), compute_capability (its first number), multiprocessors (the generic loops take a
/// block on each). Passes: block_passes of its schedules.
template <class Me, class Passes>
struct block_backend : Passes, block_operations {
  /// What orders the work: a stream of the current device.
  struct queue {
    cudaStream_t stream = nullptr;
  };
  using context = block_context;
  static constexpr int tile_q = 128;
  static constexpr int tile_kv = 128;
  static constexpr int max_head_dim = 256;

  template <int M, int N>
  using accum = cuda_common::accum<M, N>;
  template <class E, side S, image I, int R, int C>
  using operand = cuda_common::operand<E, S, I, R, C>;
  template <int M>
  using row_vector = cuda_common::row_vector<M>;
  template <int N>
  using col_vector = cuda_common::col_vector<N>;

  template <class R>
  static constexpr bool computes = !std::is_same_v<R, recipe::exact> && recipe::is_sound<R>;

  /// Empty where a GPU of the architecture is the current device.
  static text unavailable() {
    int count = 0, device = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return "no device: the CUDA driver finds no GPU";
    cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
      return "no device: the CUDA runtime does not answer";
    if (properties.major != Me::compute_capability)
      return text("the GPU is of compute capability ") << properties.major << "." << properties.minor << ", not "
                                                       << Me::compute_capability << ".0 (" << Me::architecture() << ")";
    return {};
  }
  static text device() {
    int device = 0;
    cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
      return "no device";
    return properties.name;
  }

  static std::size_t scratch_bytes(const problem& p) {
    return 64 + floats_per_block(p) * sizeof(float) * static_cast<std::size_t>(blocks(p));
  }

  template <class Kernel>
  static status launch(queue& on, const problem& p, void* scratch, std::int64_t items, const Kernel& kernel) {
    return cuda_common::launch(on.stream, scratch, floats_per_block(p), blocks(p), items, kernel, Me::name());
  }
  /// A kernel of the schedules.
  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return cuda_common::launch_blocks(on.stream, kernel, Me::name());
  }

 private:
  static std::size_t floats_per_block(const problem& p) { return (tile_floats<Me>(p, 32) + 31) / 32 * 32; }
  static int blocks(const problem& p) {
    const std::int64_t items = tile_items<Me>(p);
    return static_cast<int>(items < 1 ? 1 : items < Me::multiprocessors ? items : Me::multiprocessors);
  }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
