// SPDX-License-Identifier: Apache-2.0
// A thread's own copies of 16 bytes into shared memory, with what the instruction demands of them.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline void start_piece(void* to, const void* from, const site& where) {
  const checks::unchecked here;
  machine& m = the_machine();
  thread& t = *m.current;
  const std::uint32_t offset = offset_in(*t.home, to, piece_queue::bytes, where, "a piece's destination");
  if (offset % piece_queue::bytes != 0)
    fault(where, "copies a piece to offset " + std::to_string(offset) + ": not 16-byte aligned");
  if (reinterpret_cast<std::uintptr_t>(from) % piece_queue::bytes != 0)
    fault(where, "copies a piece from where is not 16-byte aligned");
  if constexpr (checks::on) checks::plain_access(from, piece_queue::bytes, checks::access::read, where);
  t.pieces.start(static_cast<char*>(to), static_cast<const char*>(from), where);
  if (m.one_in(4)) t.pieces.arrive_early();
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
