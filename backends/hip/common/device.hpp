// SPDX-License-Identifier: Apache-2.0
// What the HIP backends ask of the current device, and what they share: a queue and the generic loops.
#pragma once

#include <octavo/algorithm/scratch.hpp>
#include <octavo/backends/gpu/entry.hpp>
#include <octavo/backends/gpu/launch.hpp>
#include <octavo/backends/gpu/operations.hpp>

#include <string_view>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hip_common {

/// Empty where the current device is of this architecture ("gfx942"), else the reason.
inline text missing_device(std::string_view architecture) {
  int count = 0, device = 0;
  if (hipGetDeviceCount(&count) != hipSuccess || count == 0) return "no device: the HIP runtime finds no GPU";
  hipDeviceProp_t properties;
  if (hipGetDevice(&device) != hipSuccess || hipGetDeviceProperties(&properties, device) != hipSuccess)
    return "no device: the HIP runtime does not answer";
  // The name goes on with features: gfx942:sramecc+:xnack-
  const std::string_view name = properties.gcnArchName;
  if (name.substr(0, name.find(':')) != architecture)
    return text("the GPU is a ") << properties.gcnArchName << ", not a " << architecture;
  return {};
}

inline text device_name() {
  int device = 0;
  hipDeviceProp_t properties;
  if (hipGetDevice(&device) != hipSuccess || hipGetDeviceProperties(&properties, device) != hipSuccess)
    return "no device";
  return properties.name;
}

/// The generic loops of backend B on a device of `Units` compute units, and launches of kernels with blocks of their own.
template <class B, int Units>
struct loops : gpu::block_operations {
  /// What orders the work: a stream of the current device.
  struct queue {
    hipStream_t stream = nullptr;
  };
  using context = gpu::block_context;
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
    return gpu::launch(on.stream, scratch, floats_per_block(p), blocks(p), items, kernel, B::name());
  }
  /// A kernel of the schedules.
  template <class Kernel>
  static status launch_blocks(queue& on, const Kernel& kernel) {
    return gpu::launch_blocks(on.stream, kernel, B::name());
  }

 private:
  static std::size_t floats_per_block(const problem& p) { return (tile_floats<B>(p, 32) + 31) / 32 * 32; }
  static int blocks(const problem& p) {
    const std::int64_t items = tile_items<B>(p);
    return static_cast<int>(items < 1 ? 1 : items < Units ? items : Units);
  }
};

}  // namespace backends::hip_common
OCTAVO_END_NAMESPACE
