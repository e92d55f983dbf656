// SPDX-License-Identifier: Apache-2.0
// How programs that choose a backend at run time reach a GPU: memory, copies and waiting, on the queue's
// stream.
#pragma once

#include <octavo/backend/entry.hpp>
#include <octavo/backends/gpu/launch.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

template <class B>
struct device_functions {
  using queue = typename B::queue;
  static stream_t stream(void* q) { return static_cast<queue*>(q)->stream; }

  static void* allocate(std::size_t bytes) {
    void* data = nullptr;
    return gpu::allocate(&data, bytes > 0 ? bytes : 1) == success ? data : nullptr;
  }
  static void release(void* data) { (void)gpu::release(data); }
  static status synchronise(void* q) { return checked(gpu::synchronise(stream(q)), B::name()); }
  static status to_device(void* q, void* to, const void* from, std::size_t bytes) {
    return finished(q, bytes == 0 ? success : copy_to_device(to, from, bytes, stream(q)));
  }
  static status to_host(void* q, void* to, const void* from, std::size_t bytes) {
    return finished(q, bytes == 0 ? success : copy_to_host(to, from, bytes, stream(q)));
  }

 private:
  static status finished(void* q, error_t started) {
    if (const status s = checked(started, B::name()); !s.ok()) return s;
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

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
