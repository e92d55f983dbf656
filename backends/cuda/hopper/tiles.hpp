// SPDX-License-Identifier: Apache-2.0
// Which key tiles a warpgroup's rows see, and which of their pairs: the mask in the coordinates of one document, as
// 32-bit numbers (a schedule takes documents of less than 2^30 tokens).
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/cuda/hopper/fragments.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

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

/// Writes a fragment of 64 rows: x(i) is the value of element i. Executed once a block, from instructions that no loop has
/// brought: what counts is how few they are.
template <int R>
class fragment_writer {
 public:
  /// rows: of the tensor's elements, where the thread's two rows begin (at the thread's first column), null where a row
  /// does not exist.
  OCTAVO_DEVICE fragment_writer(const tensor& to, std::int64_t first, const bool (&exists)[2])
      : to_(to), exists_{exists[0], exists[1]} {
    const std::int64_t bytes = bytes_of(to.type);
    rows_[0] = static_cast<char*>(to.data) + first * bytes;
    rows_[1] = rows_[0] + 8 * to.stride_s * bytes;
  }
  template <class Value>
  OCTAVO_DEVICE void write(Value x) const {
    switch (to_.type) {
      case dtype::bf16:
        return write_pairs([&](int i) { return ptx::pack_bf16(x(i), x(i + 1)); });
      case dtype::f16:
        return write_pairs([&](int i) { return ptx::pack_f16(x(i), x(i + 1)); });
      default:
        OCTAVO_UNROLL
        for (int i = 0; i < R; ++i)
          if (exists_[row_half(i)]) reinterpret_cast<float*>(rows_[row_half(i)])[i / 4 * 8 + i % 2] = x(i);
    }
  }

 private:
  template <class Pair>
  OCTAVO_DEVICE void write_pairs(Pair pair) const {
    const bool words =
        (reinterpret_cast<std::uintptr_t>(rows_[0]) | reinterpret_cast<std::uintptr_t>(rows_[1])) % 4 == 0;
    OCTAVO_UNROLL
    for (int i = 0; i < R; i += 2) {
      if (!exists_[row_half(i)]) continue;
      char* const at = rows_[row_half(i)] + i / 4 * 16;
      const std::uint32_t bits = pair(i);
      if (words) {
        *reinterpret_cast<std::uint32_t*>(at) = bits;
      } else {
        reinterpret_cast<std::uint16_t*>(at)[0] = static_cast<std::uint16_t>(bits);
        reinterpret_cast<std::uint16_t*>(at)[1] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
  }

  const tensor& to_;
  bool exists_[2];
  char* rows_[2];
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
