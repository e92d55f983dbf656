// SPDX-License-Identifier: Apache-2.0
// The two runtimes under one set of names: CUDA's and HIP's differ in little else, and what is written on these names
// is compiled by nvcc and by clang for AMD. Host functions return an error, whose zero is success.
#pragma once

#include <octavo/config.hpp>

#include <cstddef>

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#define OCTAVO_KERNEL_ARGUMENT const  // the kernel-argument segment is read as constant memory anyway
#else
#include <cuda_runtime.h>
#define OCTAVO_KERNEL_ARGUMENT const __grid_constant__
#endif

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

#if defined(__HIPCC__)

using stream_t = hipStream_t;
using error_t = hipError_t;
inline constexpr error_t success = hipSuccess;

inline const char* error_text(error_t e) { return hipGetErrorString(e); }
inline error_t last_error() { return hipGetLastError(); }
inline error_t allocate(void** data, std::size_t bytes) { return hipMalloc(data, bytes); }
inline error_t release(void* data) { return hipFree(data); }
inline error_t synchronise(stream_t s) { return hipStreamSynchronize(s); }
inline error_t clear(void* data, std::size_t bytes, stream_t s) { return hipMemsetAsync(data, 0, bytes, s); }
inline error_t copy_to_device(void* to, const void* from, std::size_t bytes, stream_t s) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyHostToDevice, s);
}
inline error_t copy_to_host(void* to, const void* from, std::size_t bytes, stream_t s) {
  return hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToHost, s);
}
/// All of a compute unit's memory is a kernel's for the asking.
template <class Function>
error_t allow_shared(Function, int) {
  return success;
}

inline constexpr int warp_threads = 64;
inline __device__ float shuffle_xor(float x, int lanes) { return __shfl_xor(x, lanes, warp_threads); }
inline __device__ void pause() { __builtin_amdgcn_s_sleep(2); }

/// What __launch_bounds__ takes beside the threads: here the waves that each of a compute unit's four SIMDs must hold.
constexpr int launch_bound(int threads, int blocks_per_unit) {
  const int waves = threads / warp_threads * blocks_per_unit;
  return waves < 4 ? 1 : waves / 4;
}

#else

using stream_t = cudaStream_t;
using error_t = cudaError_t;
inline constexpr error_t success = cudaSuccess;

inline const char* error_text(error_t e) { return cudaGetErrorString(e); }
inline error_t last_error() { return cudaGetLastError(); }
inline error_t allocate(void** data, std::size_t bytes) { return cudaMalloc(data, bytes); }
inline error_t release(void* data) { return cudaFree(data); }
inline error_t synchronise(stream_t s) { return cudaStreamSynchronize(s); }
inline error_t clear(void* data, std::size_t bytes, stream_t s) { return cudaMemsetAsync(data, 0, bytes, s); }
inline error_t copy_to_device(void* to, const void* from, std::size_t bytes, stream_t s) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s);
}
inline error_t copy_to_host(void* to, const void* from, std::size_t bytes, stream_t s) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, s);
}
/// More than 48 KB of shared memory must be asked for.
template <class Function>
error_t allow_shared(Function function, int bytes) {
  if (bytes <= 48 * 1024) return success;
  return cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
/// Of a multiprocessor's memory `bytes` are to be shared, the rest L1 cache. A wish, which the driver may not grant.
template <class Function>
error_t leave_to_cache(Function function, int bytes) {
  int device = 0, all = 0;
  if (const error_t e = cudaGetDevice(&device); e != success) return e;
  if (const error_t e = cudaDeviceGetAttribute(&all, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device); e != success)
    return e;
  const int percent = all == 0 || bytes >= all ? 100 : (100 * bytes + all - 1) / all;
  return cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout, percent);
}

inline constexpr int warp_threads = 32;
inline __device__ float shuffle_xor(float x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }
inline __device__ void pause() { __nanosleep(100); }

/// What __launch_bounds__ takes beside the threads: blocks that a multiprocessor must hold.
constexpr int launch_bound(int, int blocks_per_unit) { return blocks_per_unit; }

#endif

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
