// SPDX-License-Identifier: Apache-2.0
// Shared memory as the asynchronous units (copies, tensor cores) see it, by pieces of 16 bytes: what threads wrote
// reaches them only by a fence_async; what they read or write themselves is theirs until somebody has waited for it.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/order.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// Who touched a piece asynchronously, of those that may not have ended for everybody.
struct shared_piece {
  access filler{};  ///< the last bulk copy
  std::vector<access> readers{};
};
struct async_state {
  std::vector<shared_piece> pieces;
};
inline async_state& async_of(block& home) {
  if (home.async == nullptr) {
    home.async = std::make_shared<async_state>();
    home.async->pieces.resize(static_cast<std::size_t>(home.shared_bytes) / 16 + 1);
  }
  return *home.async;
}

/// ", by thread 5 (...) of block 0 (file:line)", where there is a checker that knows.
inline std::string writer_of(std::uint32_t offset) {
  if constexpr (checks::on)
    if (const std::string writer = checks::last_writer(offset); !writer.empty()) return ", by " + writer + ",";
  return "";
}

/// A fault where an asynchronous unit reads a piece that threads wrote and did not fence.
inline void check_published(block& home, std::uint32_t at, const char* name, const site& where) {
  if (const int writer = home.unfenced[at / 16]; writer != 0)
    fault(where, std::string("multiplies ") + name + ", which thread " + std::to_string(writer - 1) +
                     " wrote at offset " + std::to_string(at) + writer_of(at) + " without a fence_async since");
  if (std::memcmp(&home.published[at], home.shared + at, 16) != 0) {
    const char* const now = home.shared + at;
    const auto changed = static_cast<std::uint32_t>(std::mismatch(now, now + 16, &home.published[at]).first - now);
    if (home.published_at[at / 16] == home.fences)
      fault(where, std::string("multiplies ") + name + ", which was written at offset " + std::to_string(at) +
                       writer_of(at + changed) + " and no thread has come to a fence_async since");
    std::memcpy(&home.published[at], home.shared + at, 16);
  }
  home.published_at[at / 16] = home.fences;
}

inline void put_reader(std::vector<access>& readers, const access& mine) {
  const auto same =
      std::find_if(readers.begin(), readers.end(), [&](const access& a) { return a.agent == mine.agent; });
  if (same != readers.end())
    *same = mine;
  else
    readers.push_back(mine);
}

/// An operation of thread t reads the piece at `at` from its issue to its end.
inline void read_piece(block& home, const thread& t, std::uint32_t at, const access& mine, const char* name) {
  check_published(home, at, name, mine.where);
  shared_piece& piece = async_of(home).pieces[at / 16];
  if (!piece.filler.ended_for(t.order.heard))
    fault(mine.where, std::string("reads ") + name + " at offset " + std::to_string(at) + ", which a copy fills (" +
                          text_of(piece.filler.where) + ") that it has not waited for");
  put_reader(piece.readers, mine);
}

/// A fault where thread t (or a copy that it issues) writes what an operation may still read or fill.
inline void check_overwrite(block& home, const thread& t, std::uint32_t offset, int bytes, const char* how,
                            const site& where) {
  if (home.async == nullptr) return;
  const auto last = (offset + static_cast<std::uint32_t>(bytes) - 1) / 16;
  for (std::uint32_t at = offset / 16; at <= last; ++at) {
    const shared_piece& piece = home.async->pieces[at];
    for (const access& a : piece.readers)
      if (!a.ended_for(t.order.heard))
        fault(where, std::string(how) + " offset " + std::to_string(at * 16) +
                         ", which a product or a copy may still read (" + text_of(a.where) +
                         "): this thread does not know of its end");
    if (!piece.filler.ended_for(t.order.heard))
      fault(where, std::string(how) + " offset " + std::to_string(at * 16) + ", which a copy fills (" +
                       text_of(piece.filler.where) + ") that this thread has not waited for");
  }
}

/// A bulk copy of thread t fills these bytes from its issue to its end. Returns its number at `agent`.
inline access fill_pieces(block& home, const thread& t, std::uint32_t offset, int bytes, std::uint32_t barrier,
                          const site& where) {
  check_overwrite(home, t, offset, bytes, "copies to", where);
  const int agent = home.agents.of(agents::copies, barrier);
  const access mine{agent, home.agents.next(agent, where), tensor_use::bulk_copy, 0, where};
  auto& pieces = async_of(home).pieces;
  for (std::uint32_t at = offset / 16; at < (offset + static_cast<std::uint32_t>(bytes)) / 16; ++at) {
    pieces[at].filler = mine;
    pieces[at].readers.clear();
  }
  return mine;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
