// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/wgmma.hpp on the host.
#pragma once

#include <octavo/backends/cuda/ptx/wgmma.hpp>  // struct matrix
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/warpgroup.hpp>
#include <octavo/config.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline void wgmma_fence() {
  const sim::checks::unchecked here;
  sim::this_thread().fenced = true;
  sim::maybe_yield();
}
inline void wgmma_commit() { sim::commit_products(); }
template <int pending>
inline void wgmma_wait(const sim::site where = sim::site::current()) {
  static_assert(pending >= 0 && pending <= 7, "wgmma.wait_group takes 0 to 7");
  sim::wait_products(pending, where);
}
template <int N>
inline void wgmma_touch(float (&)[N]) {}

namespace detail {
/// The extents that backends/cuda/ptx/wgmma.hpp has an overload for.
template <int registers>
inline constexpr bool has_wgmma =
    registers == 16 || registers == 32 || registers == 36 || registers == 64 || registers == 68;
}  // namespace detail

template <int registers>
inline void wgmma(float (&d)[registers], matrix a, matrix b, bool accumulate,
                  const sim::site where = sim::site::current()) {
  static_assert(detail::has_wgmma<registers>, "N is 32, 64, 72, 128 or 136");
  sim::issue_product(d, registers * 2, nullptr, a.bits(), b.bits(), accumulate, where);
}
template <int registers>
inline void wgmma(float (&d)[registers], const std::uint32_t (&a)[4], matrix b, bool accumulate,
                  const sim::site where = sim::site::current()) {
  static_assert(detail::has_wgmma<registers>, "N is 32, 64, 72, 128 or 136");
  sim::issue_product(d, registers * 2, a, 0, b.bits(), accumulate, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
