// SPDX-License-Identifier: Apache-2.0
// Exchanges of registers between the lanes of a warp. All are one collective, in which each lane names the lane it reads
// from; the names below say how the vendors' instructions choose it. None orders memory.
//
// Lanes that read from outside of the warp or of their row of 16 get `otherwise`: the DPP instructions keep what their
// destination held, or give 0 with bound_ctrl.
#pragma once

#include <octavo/backends/sim/instruction.hpp>
#include <octavo/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr int no_lane = -1;
inline constexpr int row_lanes = 16;  ///< of the rows that DPP instructions know

/// A lane's part of an exchange.
struct lane_read {
  std::uint32_t x;
  int source;  ///< lane, or no_lane
  std::uint32_t otherwise;
};

/// x of lane `source` of the warp. `name` is what faults call it.
template <class T>
T read_lane(T x, int source, T otherwise = T{}, const site& where = site::current(), const char* name = "read_lane") {
  static_assert(sizeof(T) == 4, "an exchange moves one register of 32 bits");
  if (source != no_lane && (source < 0 || source >= lanes_of_warp()))
    fault(where, std::string("reads lane ") + std::to_string(source) + " of a warp of " +
                     std::to_string(lanes_of_warp()) + " by " + name);
  lane_read mine{std::bit_cast<std::uint32_t>(x), source, std::bit_cast<std::uint32_t>(otherwise)};
  const auto model = [](std::span<lane_read* const> all) {
    std::uint32_t result[most_lanes];
    for (std::size_t lane = 0; lane < all.size(); ++lane)
      result[lane] =
          all[lane]->source == no_lane ? all[lane]->otherwise : all[static_cast<std::size_t>(all[lane]->source)]->x;
    for (std::size_t lane = 0; lane < all.size(); ++lane) all[lane]->x = result[lane];
  };
  warp_instruction(name, mine, model, where);
  return std::bit_cast<T>(mine.x);
}

/// __shfl_xor_sync, ds_swizzle: the lane whose number differs by the bits of `mask`.
template <class T>
T shuffle_xor(T x, int mask, const site& where = site::current()) {
  return read_lane(x, lane_index() ^ (mask & (lanes_of_warp() - 1)), T{}, where, "shuffle_xor");
}
/// __shfl_sync, ds_bpermute_b32 (whose address is 4 * source): the lane `source` modulo the warp's lanes.
template <class T>
T shuffle_index(T x, int source, const site& where = site::current()) {
  return read_lane(x, source & (lanes_of_warp() - 1), T{}, where, "shuffle_index");
}

/// v_readlane, v_readfirstlane: the same lane for all.
template <class T>
T broadcast(T x, int source, const site& where = site::current()) {
  return read_lane(x, source, T{}, where, "broadcast");
}

// Data-parallel primitives of AMD's ISAs (CDNA3 ISA, "DPP"), by their names in assembler: lane n of a row reads ...

/// ... lane s[n % 4] of its four.
template <class T>
T dpp_quad_perm(T x, int s0, int s1, int s2, int s3, const site& where = site::current()) {
  const int lane = lane_index(), select[4] = {s0, s1, s2, s3};
  return read_lane(x, lane / 4 * 4 + (select[lane % 4] & 3), T{}, where, "quad_perm");
}
/// ... lane n + count of its row.
template <class T>
T dpp_row_shl(T x, int count, T otherwise = T{}, const site& where = site::current()) {
  const int lane = lane_index();
  return read_lane(x, lane % row_lanes + count < row_lanes ? lane + count : no_lane, otherwise, where, "row_shl");
}
/// ... lane n - count of its row.
template <class T>
T dpp_row_shr(T x, int count, T otherwise = T{}, const site& where = site::current()) {
  const int lane = lane_index();
  return read_lane(x, lane % row_lanes >= count ? lane - count : no_lane, otherwise, where, "row_shr");
}
/// ... lane n - count, around the row.
template <class T>
T dpp_row_ror(T x, int count, const site& where = site::current()) {
  const int lane = lane_index();
  return read_lane(x, lane / row_lanes * row_lanes + ((lane - count) & (row_lanes - 1)), T{}, where, "row_ror");
}
/// ... lane 15 - n.
template <class T>
T dpp_row_mirror(T x, const site& where = site::current()) {
  return read_lane(x, lane_index() ^ 15, T{}, where, "row_mirror");
}
/// ... lane 7 - n of its half of a row.
template <class T>
T dpp_row_half_mirror(T x, const site& where = site::current()) {
  return read_lane(x, lane_index() ^ 7, T{}, where, "row_half_mirror");
}
/// ... the last lane of the row before; of the first row, nothing.
template <class T>
T dpp_row_bcast15(T x, T otherwise = T{}, const site& where = site::current()) {
  return read_lane(x, lane_index() / row_lanes * row_lanes - 1, otherwise, where, "row_bcast:15");
}
/// ... lane 31, in the upper half of a wave of 64; in the lower, nothing.
template <class T>
T dpp_row_bcast31(T x, T otherwise = T{}, const site& where = site::current()) {
  return read_lane(x, lane_index() >= 32 ? 31 : no_lane, otherwise, where, "row_bcast:31");
}
/// ... lane `source` of its row.
template <class T>
T dpp_row_newbcast(T x, int source, const site& where = site::current()) {
  return read_lane(x, lane_index() / row_lanes * row_lanes + (source & (row_lanes - 1)), T{}, where, "row_newbcast");
}

/// A bit for each lane of the warp in which x holds.
inline std::uint64_t ballot(bool x, const site& where = site::current()) {
  struct vote {
    bool x;
    std::uint64_t all;
  } mine{x, 0};
  const auto model = [](std::span<vote* const> votes) {
    std::uint64_t bits = 0;
    for (std::size_t lane = 0; lane < votes.size(); ++lane) bits |= std::uint64_t{votes[lane]->x} << lane;
    for (vote* v : votes) v->all = bits;
  };
  warp_instruction("ballot", mine, model, where);
  return mine.all;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
