// SPDX-License-Identifier: Apache-2.0
#include <octavo/tensor/documents.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace octavo;

namespace {

/// Every token of every document, the tail included, must be in exactly one tile.
void covers(const documents& docs, int tile) {
  std::vector<int> seen(static_cast<std::size_t>(docs.rows()));
  for (std::int64_t slot = 0; slot < docs.slots(tile); ++slot) {
    const token_tile t = docs.tile_at(slot, tile);
    REQUIRE(t.tokens >= 0);
    REQUIRE(t.tokens <= tile);
    if (t.tokens == 0) continue;
    const token_run run = docs.run(t.document);
    REQUIRE(t.first % tile == 0);
    REQUIRE(t.first + t.tokens <= run.length);
    CHECK(docs.first_slot(t.document, tile) + t.first / tile == slot);
    for (int i = 0; i < t.tokens; ++i) ++seen[static_cast<std::size_t>(run.begin + t.first + i)];
  }
  for (const int times : seen) CHECK(times == 1);
}

}  // namespace

TEST_CASE("tiles cover batches once") {
  for (const std::int64_t length : {0, 1, 127, 128, 129, 300}) covers({.count = 3, .length = length}, 128);
  covers({.count = 0, .length = 100}, 128);
}

TEST_CASE("tiles cover packed documents once, whatever their lengths") {
  for (const std::vector<std::int32_t>& cu : {std::vector<std::int32_t>{0, 144, 432, 944},
                                              {0, 0, 0, 5},
                                              {0, 127, 128, 256, 257},
                                              {0, 1, 2, 3, 4, 5, 6, 7, 8},
                                              {0},
                                              {0, 0},
                                              {0, 128, 128, 128, 384}})
    for (const std::int64_t tail : {0, 2, 300})
      for (const int tile : {32, 128}) {
        documents docs{.count = static_cast<std::int64_t>(cu.size()) - 1, .total = cu.back() + tail, .packed = true};
        docs.cu = offsets_of(cu.data());
        covers(docs, tile);
      }
}

TEST_CASE("statistics and elements of packed documents") {
  const std::vector<std::int64_t> cu{0, 10, 30};
  documents docs{.count = 2, .total = 33, .packed = true};
  docs.cu = offsets_of(cu.data());
  CHECK(docs.statistic(1, 2, 4, 5) == 2 * 33 + 10 + 5);
  CHECK(docs.run(2).begin == 30);
  CHECK(docs.run(2).length == 3);
  CHECK(docs.is_tail(2));
  float x = 0;
  CHECK(element_offset(contiguous(&x, 33, 4, 8), docs, 1, 5, 2) == 15 * 32 + 2 * 8);
}

TEST_CASE("offsets of elements beyond 2^31") {
  float x = 0;
  const documents docs{.count = 8300, .length = 1 << 16};
  const tensor t = contiguous(&x, 1 << 16, 16, 128);
  CHECK(element_offset(t, docs, 8299, 65535, 15) == ((std::int64_t{8299} * 65536 + 65535) * 16 + 15) * 128);
  CHECK(docs.statistic(8299, 15, 16, 65535) == (std::int64_t{8299} * 16 + 15) * 65536 + 65535);
}
