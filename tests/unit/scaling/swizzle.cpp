// SPDX-License-Identifier: Apache-2.0
#include <octavo/scaling/swizzle.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

using octavo::swizzled_scale_bytes;
using octavo::swizzled_scale_offset;

// Inside the first tile.
static_assert(swizzled_scale_offset(0, 0, 4) == 0 && swizzled_scale_offset(0, 3, 4) == 3);
static_assert(swizzled_scale_offset(1, 0, 4) == 16 && swizzled_scale_offset(31, 0, 4) == 496);
static_assert(swizzled_scale_offset(32, 0, 4) == 4 && swizzled_scale_offset(127, 3, 4) == 511);
// The next tile to the right comes before the next one below; a width that is no multiple of 4 is padded.
static_assert(swizzled_scale_offset(0, 4, 8) == 512 && swizzled_scale_offset(128, 0, 8) == 1024);
static_assert(swizzled_scale_offset(128, 0, 5) == 1024 && swizzled_scale_offset(128, 0, 3) == 512);
static_assert(swizzled_scale_bytes(1, 1) == 512 && swizzled_scale_bytes(129, 5) == 2048);
static_assert(swizzled_scale_bytes(0, 4) == 0);
// 64-bit all the way.
static_assert(swizzled_scale_bytes(std::int64_t{1} << 33, 4) == std::int64_t{1} << 35);

TEST_CASE("each scale of a plane has a byte of its own inside the plane") {
  for (std::int64_t rows : {1, 127, 128, 129, 300}) {
    for (std::int64_t columns : {1, 2, 4, 6, 8, 33}) {
      std::vector<int> uses(static_cast<std::size_t>(swizzled_scale_bytes(rows, columns)));
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t offset = swizzled_scale_offset(row, column, columns);
          REQUIRE(offset >= 0);
          REQUIRE(offset < static_cast<std::int64_t>(uses.size()));
          ++uses[static_cast<std::size_t>(offset)];
        }
      }
      std::int64_t used = 0;
      for (int count : uses) {
        CHECK(count <= 1);
        used += count;
      }
      CHECK(used == rows * columns);
    }
  }
}

TEST_CASE("the layout is a reshape: [row tile, 4, 32, column tile, 4] stored as [row tile, column tile, 32, 4, 4]") {
  constexpr std::int64_t row_tiles = 2, column_tiles = 3;
  std::int64_t offset = 0;
  for (std::int64_t row_tile = 0; row_tile < row_tiles; ++row_tile)
    for (std::int64_t column_tile = 0; column_tile < column_tiles; ++column_tile)
      for (std::int64_t lane = 0; lane < 32; ++lane)
        for (std::int64_t quarter = 0; quarter < 4; ++quarter)
          for (std::int64_t column = 0; column < 4; ++column)
            CHECK(swizzled_scale_offset(row_tile * 128 + quarter * 32 + lane, column_tile * 4 + column,
                                        column_tiles * 4) == offset++);
}
