// SPDX-License-Identifier: Apache-2.0
// The Hopper backend (H100, H200). Compile for sm_90a.
#pragma once

#include <octavo/algorithm/scratch.hpp>
#include <octavo/backends/cuda/blackwell/passes.hpp>
#include <octavo/backends/cuda/common/entry.hpp>
#include <octavo/backends/cuda/common/launch.hpp>
#include <octavo/backends/cuda/common/operations.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct cuda_blackwell : blackwell::passes, cuda_common::block_operations {
  /// What orders the work: a stream of the current device.
  struct queue {
    cudaStream_t stream = nullptr;
  };
  using context = cuda_common::block_context;
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

  static constexpr const char* name() { return "cuda-blackwell"; }

  /// Empty where a Hopper GPU is the current device.
  static text unavailable() {
    int count = 0, device = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return "no device: the CUDA driver finds no GPU";
    cudaDeviceProp properties;
    if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&properties, device) != cudaSuccess)
      return "no device: the CUDA runtime does not answer";
    if (properties.major != 9)
      return text("the GPU is of compute capability ")
             << properties.major << "." << properties.minor << ", not 9.0 (Hopper)";
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
    return cuda_common::launch(on.stream, scratch, floats_per_block(p), blocks(p), items, kernel, name());
  }
  /// A kernel of the schedules.
  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return cuda_common::launch_blocks(on.stream, kernel, name());
  }

 private:
  static constexpr int multiprocessors = 132;  ///< of an H100 or H200 (SXM); the generic loops take a block on each

  static std::size_t floats_per_block(const problem& p) { return (tile_floats<cuda_blackwell>(p, 32) + 31) / 32 * 32; }
  static int blocks(const problem& p) {
    const std::int64_t items = tile_items<cuda_blackwell>(p);
    return static_cast<int>(items < 1 ? 1 : items < multiprocessors ? items : multiprocessors);
  }
};

}  // namespace backends
OCTAVO_END_NAMESPACE
