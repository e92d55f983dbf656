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

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, Kernel::blocks_per_sm) run(const __grid_constant__ Kernel kernel) {
  kernel();
}

/// One block, on the default stream; waits for its end.
template <class Kernel>
void launch(const Kernel& kernel) {
  check(cudaFuncSetAttribute(run<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, Kernel::shared_bytes),
        "cudaFuncSetAttribute");
  run<Kernel><<<1, Kernel::threads, Kernel::shared_bytes>>>(kernel);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "kernel");
}

}  // namespace golden
