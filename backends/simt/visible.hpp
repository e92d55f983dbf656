// SPDX-License-Identifier: Apache-2.0
// Which key tiles a group of rows sees, and which of their pairs: the mask in the coordinates of one document, as
// 32-bit numbers (a schedule takes documents of less than 2^30 tokens).
#pragma once

#include <octavo/algorithm/mask.hpp>
#include <octavo/backends/simt/schedule.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

inline constexpr std::int64_t longest_document = std::int64_t{1} << 30;

struct tile_run {
  int first = 0, last = 0;  ///< [first, last)
  OCTAVO_HD bool holds(int tile) const { return tile >= first && tile < last; }
};

/// The key tiles that rows [first_row, first_row + rows) see at all, and those of them that every row sees whole.
struct visible_tiles {
  tile_run any, whole;

  /// tile: tokens of one.
  OCTAVO_HD static visible_tiles of(const key_ranges& ranges, std::int64_t first_row, int rows, bool all_rows,
                                    int tile = tile_tokens) {
    const key_range seen = tiles_of(ranges.rows(first_row, rows), tile);
    visible_tiles v{{static_cast<int>(seen.first), static_cast<int>(seen.last)}, {0, 0}};
    if (!all_rows) return v;  // rows beyond the last see nothing: no tile is whole
    // Ranges only move forward, so the last row has the latest beginning and the first one the earliest end.
    v.whole.first = static_cast<int>(ceil_div(ranges.row(first_row + rows - 1).first, tile));
    v.whole.last = static_cast<int>(ranges.row(first_row).last / tile);
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

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
