// SPDX-License-Identifier: Apache-2.0
// How device functions and loops over registers are marked: for nvcc, for clang's HIP, and for a host compiler, which
// compiles the same kernels for the simulator.
#pragma once

#include <octavo/config.hpp>

#if defined(__CUDACC__) || defined(__HIP__)
#define OCTAVO_GPU_COMPILER 1
#else
#define OCTAVO_GPU_COMPILER 0
#endif

// OCTAVO_UNROLL stands before a loop over registers: its index must be a constant.
#if defined(__CUDACC__)
#define OCTAVO_DEVICE __device__ __forceinline__
#elif defined(__HIP__)
#define OCTAVO_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#else
#define OCTAVO_DEVICE inline
#endif
#if OCTAVO_GPU_COMPILER
#define OCTAVO_UNROLL _Pragma("unroll")
#define OCTAVO_NO_UNROLL _Pragma("unroll 1")
#define OCTAVO_UNROLL_TEXT(text) _Pragma(#text)
#define OCTAVO_UNROLL_TIMES(n) OCTAVO_UNROLL_TEXT(unroll n)
#else
#define OCTAVO_UNROLL
#define OCTAVO_NO_UNROLL
#define OCTAVO_UNROLL_TIMES(n)
#endif
