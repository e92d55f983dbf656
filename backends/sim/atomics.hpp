// SPDX-License-Identifier: Apache-2.0
// Atomic operations and fences as machines of kernels model them on the host: the operation itself is simple, since one
// thread runs at a time; what the checker must know is which order it gives.
//
// Relaxed operations order nothing by themselves. A fence before a relaxed write lets those who read the value and come
// to a fence of their own see what the writer did before its fence: __threadfence on NVIDIA, buffer_wbl2 and buffer_inv
// around the scope's caches on AMD.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

using checks::order;

/// Between the accesses of this thread before and after it, for all who observe them in between.
inline void fence() {
  const checks::unchecked here;
  maybe_yield();
  if constexpr (checks::on) checks::fence();
}

template <class T>
T atomic_load(const T* from, order how = order::relaxed, const site& where = site::current()) {
  const checks::unchecked here;
  maybe_yield();
  if constexpr (checks::on) checks::atomic_access(from, sizeof(T), checks::access::read, false, how, where);
  return *static_cast<const volatile T*>(from);
}
template <class T>
void atomic_store(T* to, T x, order how = order::relaxed, const site& where = site::current()) {
  const checks::unchecked here;
  maybe_yield();
  if constexpr (checks::on) checks::atomic_access(to, sizeof(T), checks::access::write, false, how, where);
  *static_cast<volatile T*>(to) = x;
}
/// *to becomes update(*to); returns what it was.
template <class T, class Update>
T atomic_update(T* to, const Update& update, order how = order::relaxed, const site& where = site::current()) {
  const checks::unchecked here;
  maybe_yield();
  if constexpr (checks::on) checks::atomic_access(to, sizeof(T), checks::access::write, true, how, where);
  const T before = *to;
  *to = update(before);
  return before;
}
template <class T>
T atomic_add(T* to, T x, order how = order::relaxed, const site& where = site::current()) {
  return atomic_update(to, [x](T before) { return static_cast<T>(before + x); }, how, where);
}

/// A load or store of a vector that one instruction moves: a fault of the running thread where it is not aligned to its
/// own size, whatever its type says to the host's compiler.
inline void check_vector(const void* at, std::size_t bytes, const site& where = site::current()) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
    fault(where, "accesses " + std::to_string(bytes) + " bytes at once where the address is not a multiple of " +
                     std::to_string(bytes));
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
