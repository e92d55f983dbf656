// SPDX-License-Identifier: Apache-2.0
// The backend as programs choose it at run time: Kokkos initialised when it is first asked for, unless the program has
// done so, and memory where the execution space reads it.
#pragma once

#include <octavo/backend/entry.hpp>
#include <octavo/backends/kokkos/backend.hpp>

#include <cstdlib>

OCTAVO_BEGIN_NAMESPACE
namespace backends {
namespace kokkos_detail {

/// Why Kokkos cannot be used in this process; empty if it is ready, which this call sees to. Whoever initialises
/// finalises: here at exit, unless the program has done so by then.
inline text make_ready() {
  static bool begun = Kokkos::is_initialized();
  if (Kokkos::is_initialized()) return {};
  if (begun) return "Kokkos is finalised in this process, and cannot be initialised twice";
  begun = true;
  initialise_quietly();
  std::atexit([] {
    if (Kokkos::is_initialized()) Kokkos::finalize();
  });
  return {};
}

/// Bytes between the host and a device, in the order of the queue; done when it returns.
template <class To, class From, class Space>
status copy_bytes(const Space& space, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return {};
  using unmanaged = Kokkos::MemoryTraits<Kokkos::Unmanaged>;
  Kokkos::deep_copy(space, Kokkos::View<char*, To, unmanaged>(static_cast<char*>(to), bytes),
                    Kokkos::View<const char*, From, unmanaged>(static_cast<const char*>(from), bytes));
  space.fence();
  return {};
}

}  // namespace kokkos_detail

/// The entry for octavo_add_engines.
template <class B>
backend_entry kokkos_entry(std::span<const std::span<const engine>> engines) {
  using space_t = typename B::execution_space;
  backend_entry e = host_entry<B>(engines);
  e.unavailable = [] { return kokkos_detail::make_ready(); };
  e.device = []() -> text {
    if (const text why = kokkos_detail::make_ready(); !why.empty()) return why;
    return B::device();
  };
  e.make_queue = []() -> void* {
    if (!kokkos_detail::make_ready().empty()) return nullptr;
    return new (std::nothrow) typename B::queue;
  };
  if constexpr (!kokkos_detail::on_host<space_t>) {
    using memory_t = typename space_t::memory_space;
    e.memory.allocate = [](std::size_t bytes) { return Kokkos::kokkos_malloc<memory_t>("octavo", bytes); };
    e.memory.release = [](void* data) { Kokkos::kokkos_free<memory_t>(data); };
    e.memory.to_device = [](void* queue, void* to, const void* from, std::size_t bytes) {
      return kokkos_detail::copy_bytes<memory_t, Kokkos::HostSpace>(static_cast<typename B::queue*>(queue)->space, to,
                                                                    from, bytes);
    };
    e.memory.to_host = [](void* queue, void* to, const void* from, std::size_t bytes) {
      return kokkos_detail::copy_bytes<Kokkos::HostSpace, memory_t>(static_cast<typename B::queue*>(queue)->space, to,
                                                                    from, bytes);
    };
  }
  return e;
}

}  // namespace backends
OCTAVO_END_NAMESPACE
