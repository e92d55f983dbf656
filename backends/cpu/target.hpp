// SPDX-License-Identifier: Apache-2.0
// The namespace of everything that this backend compiles for an instruction set.
#pragma once

#include <octavo/config.hpp>

// The instruction set is part of every name below. Two libraries of one program that were compiled for different
// processors keep their own code: without this the linker would merge functions of the same name and different vectors.
#if defined(__CUDACC__)
#define OCTAVO_CPU_TARGET for_host_of_cuda
#elif defined(__AVX512F__)
#define OCTAVO_CPU_TARGET for_avx512
#elif defined(__AVX2__)
#define OCTAVO_CPU_TARGET for_avx2
#else
#define OCTAVO_CPU_TARGET for_baseline
#endif
#define OCTAVO_BEGIN_CPU_NAMESPACE \
  OCTAVO_BEGIN_NAMESPACE           \
  namespace backends {             \
  inline namespace OCTAVO_CPU_TARGET {
#define OCTAVO_END_CPU_NAMESPACE \
  }                              \
  }                              \
  OCTAVO_END_NAMESPACE

// Before a loop over a tile's columns: no iteration reads what another writes (tiles do not overlap), which the compiler
// cannot see through the functions it is handed. (clang tests for overlap at run time instead: its pragma warns wherever a
// loop stays scalar.)
#if defined(__GNUC__) && !defined(__clang__)
#define OCTAVO_CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define OCTAVO_CPU_INDEPENDENT
#endif
