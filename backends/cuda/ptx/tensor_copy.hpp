// SPDX-License-Identifier: Apache-2.0
// Copies of boxes of a tensor in global memory to shared memory (TMA), swizzled as matrix products want them. What of a
// box lies outside of the tensor arrives as zeros, and counts.
#pragma once

#include <octavo/backends/cuda/ptx/copy.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/config.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline constexpr int most_tensor_rank = 4;

/// A tensor of bytes in global memory and the box that a copy takes of it. Axis 0 is consecutive.
struct tensor_layout {
  const void* data;  ///< 16-byte aligned
  int rank;          ///< 2 to 4
  std::int64_t extents[most_tensor_rank];
  std::int64_t strides[most_tensor_rank - 1];  ///< of axes 1 and on, in bytes: multiples of 16
  int box[most_tensor_rank];  ///< up to 256 each; box[0] a multiple of 16, with a swizzle row_bytes(pattern)
  swizzle pattern;
};

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/tensor_copy.hpp>
#else
#include <cuda.h>
#include <cuda_runtime_api.h>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// What the copy engine knows of a layout. A member of the kernel, which is a __grid_constant__ parameter.
struct tensor_map {
  CUtensorMap bits;
};

/// Fills `map` on the host. False where there is no driver, or for a layout that is not as tensor_layout says.
inline bool encode(tensor_map& map, const tensor_layout& layout) {
  if (layout.rank < 2 || layout.rank > most_tensor_rank ||
      (layout.pattern != swizzle::none && layout.box[0] != row_bytes(layout.pattern)))
    return false;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) !=
          cudaSuccess ||
      found != cudaDriverEntryPointSuccess)
    return false;
  cuuint64_t extents[most_tensor_rank], strides[most_tensor_rank];
  cuuint32_t box[most_tensor_rank], steps[most_tensor_rank];
  for (int i = 0; i < layout.rank; ++i) {
    extents[i] = static_cast<cuuint64_t>(layout.extents[i]);
    box[i] = static_cast<cuuint32_t>(layout.box[i]);
    steps[i] = 1;
    if (i > 0) strides[i - 1] = static_cast<cuuint64_t>(layout.strides[i - 1]);
  }
  const CUtensorMapSwizzle pattern = layout.pattern == swizzle::bytes_128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : layout.pattern == swizzle::bytes_64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : layout.pattern == swizzle::bytes_32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                                           : CU_TENSOR_MAP_SWIZZLE_NONE;
  const auto encode_tiled = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  return encode_tiled(&map.bits, CU_TENSOR_MAP_DATA_TYPE_UINT8, static_cast<cuuint32_t>(layout.rank),
                      const_cast<void*>(layout.data), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                      pattern, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

/// Copies the box that begins at element (x, y) of a tensor of rank 2 to `to`, axis 0 fastest, and counts the box's bytes
/// at `arrived`. `to` stands at a multiple of 128 bytes, with a swizzle of 8 rows of it.
OCTAVO_DEVICE void tensor_load(void* to, const tensor_map& map, int x, int y, shared_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(shared_address(to)),
      "l"(&map.bits), "r"(x), "r"(y), "r"(shared_address(&arrived))
      : "memory");
}
OCTAVO_DEVICE void tensor_load(void* to, const tensor_map& map, int x, int y, int z, shared_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared_address(to)),
      "l"(&map.bits), "r"(x), "r"(y), "r"(z), "r"(shared_address(&arrived))
      : "memory");
}
OCTAVO_DEVICE void tensor_load(void* to, const tensor_map& map, int x, int y, int z, int w, shared_barrier& arrived) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
      "[%6];" ::"r"(shared_address(to)),
      "l"(&map.bits), "r"(x), "r"(y), "r"(z), "r"(w), "r"(shared_address(&arrived))
      : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
