// SPDX-License-Identifier: Apache-2.0
// Who a thread is and how the threads of a block wait for each other. Kernels that name nothing of CUDA but what stands
// in this folder also run on a host, where backends/sim models each instruction.
#pragma once

#include <octavo/backends/simt/qualifiers.hpp>
#include <octavo/config.hpp>

#include <cstdint>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/device.hpp>
#endif

#if defined(__CUDACC__)
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline constexpr int warp_threads = 32;
inline constexpr int group_threads = 128;  ///< a warpgroup: four warps that issue a wgmma together

OCTAVO_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
OCTAVO_DEVICE std::int64_t block_index() { return blockIdx.x; }

/// The block's dynamic shared memory, aligned to 1024 bytes.
OCTAVO_DEVICE char* shared_memory() {
  extern __shared__ __align__(1024) char memory[];
  return memory;
}
/// Where p stands in shared memory, as instructions and descriptors name it.
OCTAVO_DEVICE std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// All threads of the block.
OCTAVO_DEVICE void sync_block() { __syncthreads(); }
/// All threads of a warp.
OCTAVO_DEVICE void sync_warp() { __syncwarp(); }
/// `threads` threads of the block at named barrier `id` (1 to 15): each waits for all.
OCTAVO_DEVICE void sync_named(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
/// Counts at the barrier without waiting.
OCTAVO_DEVICE void arrive_named(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// x of lane 0, which the compiler then knows to be the same in the whole warp.
OCTAVO_DEVICE int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
OCTAVO_DEVICE float shuffle_xor(float x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }
OCTAVO_DEVICE std::uint32_t shuffle_xor(std::uint32_t x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }
/// The largest x of the warp, to all its lanes.
OCTAVO_DEVICE std::uint32_t max_over_warp(std::uint32_t x) {
  std::uint32_t y;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(y) : "r"(x));
  return y;
}
/// Whether x holds in any lane of the warp.
OCTAVO_DEVICE bool any_in_warp(bool x) { return __any_sync(0xffffffffu, x); }

/// 0, which the compiler does not know.
OCTAVO_DEVICE int unknown_zero() {
  int x;
  asm volatile("mov.u32 %0, 0;" : "=r"(x));
  return x;
}

/// Registers per thread of the calling warpgroup from here on. The kernel must be launched with a bound
/// (__launch_bounds__(threads, 1)), or the compiler ignores both.
template <int N>
OCTAVO_DEVICE void raise_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
OCTAVO_DEVICE void lower_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

/// Adds to global memory without an answer: four consecutive floats, 16-byte aligned.
OCTAVO_DEVICE void reduce_add(float* to, float a, float b, float c, float d) {
  asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d)
               : "memory");
}
OCTAVO_DEVICE void atomic_or(std::uint32_t* to, std::uint32_t bits) { atomicOr(to, bits); }
OCTAVO_DEVICE std::int32_t atomic_add(std::int32_t* to, std::int32_t x) { return atomicAdd(to, x); }
/// Waits until *turn is `number`; what was written before it was set is then visible to the caller.
OCTAVO_DEVICE void wait_turn(const std::int32_t* turn, std::int32_t number) {
  std::int32_t seen;
  do {
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(turn) : "memory");
  } while (seen != number);
}
OCTAVO_DEVICE void pass_turn(std::int32_t* turn, std::int32_t number) {
  __threadfence();
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(turn), "r"(number) : "memory");
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
