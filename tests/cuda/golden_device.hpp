// SPDX-License-Identifier: Apache-2.0
// What programs that write golden files need of the CUDA run-time library.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

namespace golden {

inline void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  std::exit(1);
}

template <class T>
struct on_device {
  T* at = nullptr;
  /// Null of nothing.
  explicit on_device(const std::vector<T>& x) {
    if (x.empty()) return;
    check(cudaMalloc(&at, x.size() * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(at, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~on_device() { cudaFree(at); }
};

}  // namespace golden
