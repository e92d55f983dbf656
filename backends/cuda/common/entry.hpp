// SPDX-License-Identifier: Apache-2.0
// How programs that choose a backend at run time reach a CUDA device: memory, copies and waiting, on the queue's
// stream.
#pragma once

#include <octavo/backend/entry.hpp>
#include <octavo/backends/cuda/common/launch.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

template <class B>
struct device_functions {
  using queue = typename B::queue;
  static cudaStream_t stream(void* q) { return static_cast<queue*>(q)->stream; }

  static void* allocate(std::size_t bytes) {
    void* data = nullptr;
    return cudaMalloc(&data, bytes > 0 ? bytes : 1) == cudaSuccess ? data : nullptr;
  }
  static void release(void* data) { (void)cudaFree(data); }
  static status synchronise(void* q) { return checked(cudaStreamSynchronize(stream(q)), B::name()); }
  static status to_device(void* q, void* to, const void* from, std::size_t bytes) {
    return copy(q, to, from, bytes, cudaMemcpyHostToDevice);
  }
  static status to_host(void* q, void* to, const void* from, std::size_t bytes) {
    return copy(q, to, from, bytes, cudaMemcpyDeviceToHost);
  }

 private:
  static status copy(void* q, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
    if (bytes == 0) return {};
    if (const status s = checked(cudaMemcpyAsync(to, from, bytes, kind, stream(q)), B::name()); !s.ok()) return s;
    return synchronise(q);
  }
};

template <class B>
backend_entry entry(std::span<const std::span<const engine>> engines) {
  backend_entry e = host_entry<B>(engines);
  using functions = device_functions<B>;
  e.synchronise = &functions::synchronise;
  e.memory = {&functions::allocate, &functions::release, &functions::to_device, &functions::to_host};
  return e;
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
