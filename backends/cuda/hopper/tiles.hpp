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

/// Stores two consecutive elements of a result, rounded to its type, where the tensor allows 4- and 8-byte stores.
class pair_writer {
 public:
  OCTAVO_DEVICE pair_writer(const tensor& to) : to_(to) {
    const std::int64_t pair_bytes = to.type == dtype::f32 ? 8 : 4;
    const std::int64_t odd = to.stride_b | to.stride_s | to.stride_h;
    paired_ = reinterpret_cast<std::uintptr_t>(to.data) % pair_bytes == 0 && odd % 2 == 0;
  }
  OCTAVO_DEVICE void operator()(std::int64_t at, float a, float b) const {
    if (!paired_) {
      const float x[2] = {a, b};
      write_elements(to_, at, 2, x);
    } else if (to_.type == dtype::f32) {
      float* to = static_cast<float*>(to_.data) + at;
      struct alignas(8) two {
        float a, b;
      };
      *reinterpret_cast<two*>(to) = {a, b};
    } else {
      const std::uint32_t low =
          to_.type == dtype::bf16 ? octavo::bf16::nearest_even(a).bits : fp16::nearest_even(a).bits;
      const std::uint32_t high =
          to_.type == dtype::bf16 ? octavo::bf16::nearest_even(b).bits : fp16::nearest_even(b).bits;
      *reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(to_.data) + at) = low | high << 16;
    }
  }

 private:
  tensor to_;
  bool paired_;
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
