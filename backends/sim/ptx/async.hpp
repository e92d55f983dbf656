// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/async.hpp on the host. A piece arrives at some time from its issue to the wait that covers it; until
// then its destination holds 0xff.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/pieces.hpp>
#include <octavo/config.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline void copy_piece(void* to, const void* from, const sim::site where = sim::site::current()) {
  sim::maybe_yield();
  sim::start_piece(to, from, where);
}
inline void commit_pieces() { sim::this_thread().pieces.commit(); }
template <int pending>
inline void wait_pieces() {
  sim::this_thread().pieces.wait(pending);
  sim::maybe_yield();
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
