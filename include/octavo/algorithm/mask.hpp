// SPDX-License-Identifier: Apache-2.0
// Masks as ranges: whatever the mask, the keys that row i may see are one run [first(i), last(i)), and both ends never
// move back as i grows. Tiles outside a run are skipped; tiles inside need no test per element.
#pragma once

#include <octavo/tensor/documents.hpp>

OCTAVO_BEGIN_NAMESPACE

struct key_range {
  std::int64_t first = 0, last = 0;  ///< [first, last)
};

/// The allowed keys of the rows of one document, in the document's own coordinates.
class key_ranges {
 public:
  OCTAVO_HD key_ranges(const problem& p, std::int64_t s_q, std::int64_t s_kv) : s_q_(s_q), s_kv_(s_kv) {
    const std::int64_t q_total = p.shard.s_q_total ? p.shard.s_q_total : p.shard.q_begin + s_q;
    const std::int64_t kv_total = p.shard.s_kv_total ? p.shard.s_kv_total : p.shard.kv_begin + s_kv;
    const bool bottom_right = p.mask.causal == causal_mask::bottom_right;
    position_ = p.shard.q_begin - p.shard.kv_begin + (bottom_right ? kv_total - q_total : 0);
    // An end that reaches past every key is as good as none, and keeps the sums below from overflowing.
    const std::int64_t unbounded = q_total + kv_total + s_q + s_kv + 1;
    left_ = p.mask.window_left < 0 || p.mask.window_left > unbounded ? unbounded : p.mask.window_left;
    right_ = p.mask.window_right < 0 || p.mask.window_right > unbounded ? unbounded : p.mask.window_right;
    if (p.mask.causal != causal_mask::none) right_ = 0;
  }

  /// Row i's keys; empty beyond the last row.
  OCTAVO_HD key_range row(std::int64_t i) const {
    if (i >= s_q_) return {0, 0};
    const std::int64_t at = i + position_;
    const std::int64_t first = clamp(at - left_), last = clamp(at + right_ + 1);
    return {first, last < first ? first : last};
  }
  /// Row i sees the keys [i + first_offset(), i + last_offset()), cut to those of the document.
  OCTAVO_HD std::int64_t first_offset() const { return position_ - left_; }
  OCTAVO_HD std::int64_t last_offset() const { return position_ + right_ + 1; }
  /// The rows that see key j, which are one run too. j is a key of the document.
  OCTAVO_HD key_range rows_of(std::int64_t j) const {
    const auto row = [this](std::int64_t i) { return i < 0 ? 0 : i > s_q_ ? s_q_ : i; };
    const std::int64_t first = row(j - position_ - right_), last = row(j - position_ + left_ + 1);
    return {first, last < first ? first : last};
  }
  /// The keys that any of the rows [first_row, first_row + rows) may see.
  OCTAVO_HD key_range rows(std::int64_t first_row, int rows) const {
    if (rows == 0) return {0, 0};
    const key_range keys{row(first_row).first, row(first_row + rows - 1).last};
    return keys.last > keys.first ? keys : key_range{0, 0};
  }

 private:
  OCTAVO_HD std::int64_t clamp(std::int64_t j) const { return j < 0 ? 0 : j > s_kv_ ? s_kv_ : j; }
  std::int64_t s_q_, s_kv_, position_, left_, right_;
};

/// The mask of one tile of rows x keys scores whose first pair is (i0, j0); the coordinates it takes are the tile's
/// own. Rows and keys beyond the document's last are not allowed.
class tile_mask {
 public:
  OCTAVO_HD tile_mask(const key_ranges& ranges, std::int64_t i0, std::int64_t j0, int rows, int keys)
      : ranges_(ranges), i0_(i0), j0_(j0), keys_(keys) {
    // Ranges only move forward, so the first and the last row decide for all of them.
    full_ = rows > 0 && first(rows - 1) == 0 && last(0) == keys && last(rows - 1) == keys;
  }
  /// First and one past the last allowed key of row i, within the tile.
  OCTAVO_HD int first(int i) const { return clip(ranges_.row(i0_ + i).first); }
  OCTAVO_HD int last(int i) const { return clip(ranges_.row(i0_ + i).last); }
  OCTAVO_HD int count(int i) const { return last(i) - first(i); }
  OCTAVO_HD bool allowed(int i, int j) const { return j >= first(i) && j < last(i); }
  /// Whether every pair of the tile is allowed.
  OCTAVO_HD bool full() const { return full_; }
  /// Whether row i's first allowed key lies in this tile.
  OCTAVO_HD bool begins(int i) const { return count(i) > 0 && ranges_.row(i0_ + i).first >= j0_; }

 private:
  OCTAVO_HD int clip(std::int64_t j) const {
    const std::int64_t inside = j - j0_;
    return static_cast<int>(inside < 0 ? 0 : inside > keys_ ? keys_ : inside);
  }
  key_ranges ranges_;
  std::int64_t i0_, j0_;
  int keys_;
  bool full_;
};

/// The key tiles of `tile` tokens that a run of keys touches: [first, last).
OCTAVO_HD inline key_range tiles_of(const key_range& keys, int tile) {
  if (keys.last <= keys.first) return {0, 0};
  return {keys.first / tile, (keys.last + tile - 1) / tile};
}

/// Rows or columns of a tile that covers `length` tokens: at most `tile`, in whole blocks of 32, the smallest run that
/// shares a scale.
OCTAVO_HD constexpr int tile_extent(std::int64_t length, int tile) {
  const std::int64_t whole = ceil_div(length, 32) * 32;
  return static_cast<int>(whole < tile ? whole : tile);
}

OCTAVO_END_NAMESPACE
