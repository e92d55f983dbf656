// SPDX-License-Identifier: Apache-2.0
// The calls that compilers put before every access to memory under -fsanitize=thread, by the names of LLVM's run-time
// library. Atomic operations they leave to the called function altogether.
#pragma once

#include <octavo/backends/sim/checks/callbacks.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace octavo_sim_calls {

namespace checks = octavo::backends::sim::checks;

inline bool in_kernel(const volatile void* p) {
  return checks::quiet == 0 &&
         reinterpret_cast<std::uintptr_t>(p) - checks::running.stack >= checks::running.stack_bytes;
}

/// The order of an operation of C++: 0 relaxed, 1 consume, 2 acquire, 3 release, 4 both, 5 sequentially consistent.
inline checks::order order_of(int memory_order) {
  switch (memory_order) {
    case 0:
      return checks::order::relaxed;
    case 1:
    case 2:
      return checks::order::acquire;
    case 3:
      return checks::order::release;
    default:
      return checks::order::acquire_release;
  }
}

inline void atomic(const volatile void* p, std::size_t bytes, bool writes, bool both, int memory_order,
                   const void* return_address) {
  if (!in_kernel(p)) return;
  const checks::detail::working c;
  c->atomic_access(reinterpret_cast<std::uintptr_t>(p), bytes, writes, both, order_of(memory_order),
                   checks::places::of(return_address));
}

}  // namespace octavo_sim_calls

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define OCTAVO_CALLER __builtin_return_address(0)
#define OCTAVO_ACCESS(bytes)                                                          \
  void __tsan_read##bytes(void* p) {                                                  \
    octavo_sim_calls::checks::detail::look_at(p, bytes, false, OCTAVO_CALLER, bytes); \
  }                                                                                   \
  void __tsan_write##bytes(void* p) {                                                 \
    octavo_sim_calls::checks::detail::look_at(p, bytes, true, OCTAVO_CALLER, bytes);  \
  }                                                                                   \
  void __tsan_unaligned_read##bytes(void* p) {                                        \
    octavo_sim_calls::checks::detail::look_at(p, bytes, false, OCTAVO_CALLER, 1);     \
  }                                                                                   \
  void __tsan_unaligned_write##bytes(void* p) {                                       \
    octavo_sim_calls::checks::detail::look_at(p, bytes, true, OCTAVO_CALLER, 1);      \
  }                                                                                   \
  void __tsan_read_write##bytes(void* p) {                                            \
    octavo_sim_calls::checks::detail::look_at(p, bytes, false, OCTAVO_CALLER, bytes); \
    octavo_sim_calls::checks::detail::look_at(p, bytes, true, OCTAVO_CALLER, bytes);  \
  }                                                                                   \
  void __tsan_unaligned_read_write##bytes(void* p) {                                  \
    octavo_sim_calls::checks::detail::look_at(p, bytes, false, OCTAVO_CALLER, 1);     \
    octavo_sim_calls::checks::detail::look_at(p, bytes, true, OCTAVO_CALLER, 1);      \
  }
OCTAVO_ACCESS(1)
OCTAVO_ACCESS(2)
OCTAVO_ACCESS(4)
OCTAVO_ACCESS(8)
OCTAVO_ACCESS(16)
#undef OCTAVO_ACCESS

void __tsan_read_range(void* p, std::size_t bytes) {
  octavo_sim_calls::checks::detail::look_at(p, bytes, false, OCTAVO_CALLER, 1);
}
void __tsan_write_range(void* p, std::size_t bytes) {
  octavo_sim_calls::checks::detail::look_at(p, bytes, true, OCTAVO_CALLER, 1);
}
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  octavo_sim_calls::checks::detail::look_at(from, bytes, false, OCTAVO_CALLER, 1);
  octavo_sim_calls::checks::detail::look_at(to, bytes, true, OCTAVO_CALLER, 1);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  octavo_sim_calls::checks::detail::look_at(from, bytes, false, OCTAVO_CALLER, 1);
  octavo_sim_calls::checks::detail::look_at(to, bytes, true, OCTAVO_CALLER, 1);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int x, std::size_t bytes) {
  octavo_sim_calls::checks::detail::look_at(to, bytes, true, OCTAVO_CALLER, 1);
  return std::memset(to, x, bytes);
}

void __tsan_atomic_thread_fence(int memory_order) {
  if (memory_order != 0 && octavo_sim_calls::in_kernel(nullptr)) octavo_sim_calls::checks::fence();
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}

// What the caller asks of order the processor gives by the strongest, the checker as asked.
#define OCTAVO_ATOMIC_FETCH(bits, type, operation)                                           \
  type __tsan_atomic##bits##_fetch_##operation(volatile type* p, type x, int memory_order) { \
    octavo_sim_calls::atomic(p, sizeof(type), true, true, memory_order, OCTAVO_CALLER);      \
    return __atomic_fetch_##operation(p, x, __ATOMIC_SEQ_CST);                               \
  }
#define OCTAVO_ATOMIC(bits, type)                                                                                      \
  type __tsan_atomic##bits##_load(const volatile type* p, int memory_order) {                                          \
    octavo_sim_calls::atomic(p, sizeof(type), false, false, memory_order, OCTAVO_CALLER);                              \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                       \
  }                                                                                                                    \
  void __tsan_atomic##bits##_store(volatile type* p, type x, int memory_order) {                                       \
    octavo_sim_calls::atomic(p, sizeof(type), true, false, memory_order, OCTAVO_CALLER);                               \
    __atomic_store_n(p, x, __ATOMIC_SEQ_CST);                                                                          \
  }                                                                                                                    \
  type __tsan_atomic##bits##_exchange(volatile type* p, type x, int memory_order) {                                    \
    octavo_sim_calls::atomic(p, sizeof(type), true, true, memory_order, OCTAVO_CALLER);                                \
    return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                    \
  OCTAVO_ATOMIC_FETCH(bits, type, add)                                                                                 \
  OCTAVO_ATOMIC_FETCH(bits, type, sub)                                                                                 \
  OCTAVO_ATOMIC_FETCH(bits, type, and)                                                                                 \
  OCTAVO_ATOMIC_FETCH(bits, type, or)                                                                                  \
  OCTAVO_ATOMIC_FETCH(bits, type, xor)                                                                                 \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type x, int memory_order, int) { \
    octavo_sim_calls::atomic(p, sizeof(type), true, true, memory_order, OCTAVO_CALLER);                                \
    return __atomic_compare_exchange_n(p, expected, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                     \
  }                                                                                                                    \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type x, int memory_order, int) {   \
    octavo_sim_calls::atomic(p, sizeof(type), true, true, memory_order, OCTAVO_CALLER);                                \
    return __atomic_compare_exchange_n(p, expected, x, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
  }                                                                                                                    \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* p, type expected, type x, int memory_order, int) {    \
    octavo_sim_calls::atomic(p, sizeof(type), true, true, memory_order, OCTAVO_CALLER);                                \
    __atomic_compare_exchange_n(p, &expected, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                           \
    return expected;                                                                                                   \
  }
OCTAVO_ATOMIC(8, std::uint8_t)
OCTAVO_ATOMIC(16, std::uint16_t)
OCTAVO_ATOMIC(32, std::uint32_t)
OCTAVO_ATOMIC(64, std::uint64_t)
#undef OCTAVO_ATOMIC
#undef OCTAVO_ATOMIC_FETCH
#undef OCTAVO_CALLER

}  // extern "C"
