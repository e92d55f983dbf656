// SPDX-License-Identifier: Apache-2.0
// How much the generic loops need of a backend whose tiles live in memory: what one worker's tiles take, and how many
// workers a problem can keep busy.
#pragma once

#include <octavo/algorithm/mask.hpp>

#include <cstddef>

OCTAVO_BEGIN_NAMESPACE

/// Floats of all tiles of one worker: the sum over those of the backward, the kernel that takes most. Each tile may be
/// padded by up to `padding` floats.
template <class B>
std::size_t tile_floats(const problem& p, int padding) {
  const std::int64_t d = p.d_qk > p.d_v ? p.d_qk : p.d_v;
  const std::int64_t m = tile_extent(p.packed ? p.total_q : p.s_q, B::tile_q);
  const std::int64_t n = tile_extent(p.packed ? p.total_kv : p.s_kv, B::tile_kv);
  constexpr std::int64_t tiles = 64;
  return static_cast<std::size_t>((5 * m + 7 * n) * d + 6 * m * n + 16 * (m + n) + tiles * padding);
}

/// Tiles of query rows or of keys, whichever are more: the most items that a tile kernel has.
template <class B>
std::int64_t tile_items(const problem& p) {
  const auto slots = [&](std::int64_t s, std::int64_t total, int tile) {
    return p.packed ? total / tile + p.b + 1 : p.b * ceil_div(s, tile);
  };
  const std::int64_t q = slots(p.s_q, p.total_q, B::tile_q) * p.h_q,
                     kv = slots(p.s_kv, p.total_kv, B::tile_kv) * p.h_kv;
  return q > kv ? q : kv;
}

OCTAVO_END_NAMESPACE
