// SPDX-License-Identifier: Apache-2.0
// Which tiles of keys a run of query rows sees, and which of their pairs: the mask in the coordinates of one document,
// as 32-bit numbers (a schedule takes documents of less than 2^30 tokens).
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

inline constexpr int tile_tokens = 128;  ///< of a quantised tensor that are kept, copied and multiplied together

inline constexpr std::int64_t longest_document = std::int64_t{1} << 30;

struct tile_run {
  int first = 0, last = 0;  ///< [first, last)
  OCTAVO_HD bool holds(int tile) const { return tile >= first && tile < last; }
};

/// The key tiles that rows [first_row, first_row + rows) see at all, and those of them that every row sees whole.
struct visible_tiles {
  tile_run any, whole;

  OCTAVO_HD static visible_tiles of(const key_ranges& ranges, std::int64_t first_row, int rows, bool all_rows) {
    const key_range seen = tiles_of(ranges.rows(first_row, rows), tile_tokens);
    visible_tiles v{{static_cast<int>(seen.first), static_cast<int>(seen.last)}, {0, 0}};
    if (!all_rows) return v;  // rows beyond the last see nothing: no tile is whole
    // Ranges only move forward, so the last row has the latest beginning and the first one the earliest end.
    v.whole.first = static_cast<int>(ceil_div(ranges.row(first_row + rows - 1).first, tile_tokens));
    v.whole.last = static_cast<int>(ranges.row(first_row).last / tile_tokens);
    return v;
  }
};

/// One row's keys.
struct row_keys {
  int first = 0, last = 0;
  OCTAVO_HD static row_keys of(const key_ranges& ranges, std::int64_t row) {
    const key_range keys = ranges.row(row);
    return {static_cast<int>(keys.first), static_cast<int>(keys.last)};
  }
  OCTAVO_HD bool allows(int key) const { return key >= first && key < last; }
};

/// What stands in a quotient: a schedule has less than 2^30 blocks, and narrow numbers divide several times faster,
/// without a call that costs registers.
OCTAVO_DEVICE std::uint32_t narrow(std::int64_t x) { return static_cast<std::uint32_t>(x); }

/// docs.tile_at(slot, tile).
template <int tile>
OCTAVO_DEVICE token_tile tile_of_slot(const documents& docs, std::uint32_t slot) {
  if (docs.packed) return docs.tile_at(slot, tile);
  const std::uint32_t tiles = narrow(ceil_div(docs.length, tile)), document = slot / tiles;
  const std::int64_t first = std::int64_t{slot - document * tiles} * tile, left = docs.length - first;
  return {document, first, static_cast<int>(left < tile ? left : tile)};
}
/// data.head(document, h).
template <class Recipe>
OCTAVO_DEVICE head_of_document head_of(const pass_data<Recipe>& data, std::int64_t document, std::uint32_t h) {
  const std::uint32_t group = narrow(data.problem.h_q) / narrow(data.problem.h_kv);
  head_of_document at{document, h, h / group, data.q_docs.run(document), data.kv_docs.run(document)};
  if (data.q_docs.is_tail(document) || data.kv_docs.is_tail(document)) at.q.length = at.kv.length = 0;
  return at;
}

/// The query tiles that see any key of a tile.
OCTAVO_HD inline tile_run query_tiles(const key_ranges& ranges, const head_of_document& at, const token_tile& tile) {
  if (at.q.length == 0) return {0, 0};
  const key_range rows{ranges.rows_of(tile.first).first, ranges.rows_of(tile.first + tile.tokens - 1).last};
  const key_range tiles = tiles_of(rows, tile_tokens);
  return {static_cast<int>(tiles.first), static_cast<int>(tiles.last)};
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
