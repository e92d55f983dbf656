// SPDX-License-Identifier: Apache-2.0
// The ranges against the definition of each mask, pair by pair.
#include <octavo/algorithm/mask.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <string>

using namespace octavo;

namespace {

/// The mask as the API defines it, written without ranges.
bool allowed(const problem& p, std::int64_t i, std::int64_t j) {
  const std::int64_t at = p.mask.causal == causal_mask::bottom_right ? i + p.s_kv - p.s_q : i;
  if (p.mask.causal != causal_mask::none && j > at) return false;
  if (p.mask.window_left >= 0 && j < at - p.mask.window_left) return false;
  if (p.mask.window_right >= 0 && j > at + p.mask.window_right) return false;
  return true;
}

std::string drawing(const problem& p) {
  const key_ranges ranges(p, p.s_q, p.s_kv);
  std::string out;
  for (std::int64_t i = 0; i < p.s_q; ++i) {
    for (std::int64_t j = 0; j < p.s_kv; ++j) out += j >= ranges.row(i).first && j < ranges.row(i).last ? 'x' : '.';
    out += ' ';
  }
  return out;
}

}  // namespace

TEST_CASE("the drawings of problem.hpp") {
  const auto draw = [](mask m) { return drawing(problem{.s_q = 3, .s_kv = 5, .mask = m}); };
  CHECK(draw({causal_mask::top_left}) == "x.... xx... xxx.. ");
  CHECK(draw({causal_mask::bottom_right}) == "xxx.. xxxx. xxxxx ");
  CHECK(draw({causal_mask::none, 1, 0}) == "x.... xx... .xx.. ");
  CHECK(draw({causal_mask::bottom_right, 1, 0}) == ".xx.. ..xx. ...xx ");
}

TEST_CASE("ranges equal the definition for every mask and shape") {
  for (const causal_mask causal : {causal_mask::none, causal_mask::top_left, causal_mask::bottom_right})
    for (const std::int64_t left : {-1, 0, 1, 3, 100})
      for (const std::int64_t right : {-1, 0, 2, 100})
        for (const std::int64_t s_q : {0, 1, 4, 9})
          for (const std::int64_t s_kv : {0, 1, 4, 9}) {
            const problem p{.s_q = s_q, .s_kv = s_kv, .mask = {causal, left, right}};
            const key_ranges ranges(p, s_q, s_kv);
            for (std::int64_t i = 0; i < s_q; ++i) {
              const key_range row = ranges.row(i);
              REQUIRE(row.first <= row.last);
              for (std::int64_t j = 0; j < s_kv; ++j) CHECK((j >= row.first && j < row.last) == allowed(p, i, j));
            }
            CHECK(ranges.row(s_q).first == ranges.row(s_q).last);
          }
}

TEST_CASE("a window as large as a number can be is no window") {
  constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const problem p{.s_q = 5, .s_kv = 7, .mask = {causal_mask::none, huge, huge}};
  CHECK(drawing(p) == drawing(problem{.s_q = 5, .s_kv = 7}));
}

TEST_CASE("a shard sees its part of the whole mask") {
  const problem whole{.s_q = 9, .s_kv = 9, .mask = {causal_mask::top_left, 4, -1}};
  problem part = whole;
  part.s_q = 4, part.s_kv = 3;
  part.shard = {.q_begin = 3, .kv_begin = 2, .s_q_total = 9, .s_kv_total = 9};
  const key_ranges all(whole, 9, 9), some(part, 4, 3);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      const key_range w = all.row(i + 3), s = some.row(i);
      CHECK((j >= s.first && j < s.last) == (j + 2 >= w.first && j + 2 < w.last));
    }
}

TEST_CASE("a tile's mask says when no pair needs a test") {
  const problem p{.s_q = 64, .s_kv = 64, .mask = {causal_mask::top_left}};
  const key_ranges ranges(p, 64, 64);
  CHECK(tile_mask(ranges, 32, 0, 32, 32).full());
  CHECK_FALSE(tile_mask(ranges, 0, 0, 32, 32).full());
  CHECK_FALSE(tile_mask(ranges, 31, 0, 32, 64).full());
  // Rows or keys beyond the document's last are not allowed, so such a tile is not full.
  const problem open{.s_q = 40, .s_kv = 40};
  const key_ranges all(open, 40, 40);
  CHECK(tile_mask(all, 0, 0, 32, 32).full());
  CHECK_FALSE(tile_mask(all, 32, 0, 32, 32).full());
  CHECK_FALSE(tile_mask(all, 0, 32, 32, 32).full());
  const tile_mask edge(all, 0, 32, 32, 32);
  CHECK(edge.count(0) == 8);
  CHECK_FALSE(edge.allowed(0, 8));
}

TEST_CASE("tiles that a range touches") {
  CHECK(tiles_of({0, 0}, 128).last == 0);
  CHECK(tiles_of({127, 129}, 128).first == 0);
  CHECK(tiles_of({127, 129}, 128).last == 2);
  CHECK(tiles_of({128, 256}, 128).first == 1);
  CHECK(tiles_of({128, 256}, 128).last == 2);
  CHECK(tile_extent(1, 128) == 32);
  CHECK(tile_extent(33, 128) == 64);
  CHECK(tile_extent(1000, 128) == 128);
  CHECK(tile_extent(0, 128) == 0);
}
