// SPDX-License-Identifier: Apache-2.0
// The list of tiles that resident blocks draw from: every tile of every head once, with what the mask says of it.
#include <octavo/backends/cpu/backend.hpp>
#include <octavo/backends/cuda/common/tile_work.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace octavo;
using namespace octavo::backends;
using cuda_common::tile_work;

namespace {

struct list_of_tiles {
  std::vector<tile_work> tiles;
  std::int32_t tickets[2] = {7, 7};
};

template <bool of_queries>
list_of_tiles make_list(const problem& p, const offsets& cu_q, const offsets& cu_kv) {
  pass_data<recipe::tile> data{};
  data.problem = p;
  data.q_docs = query_documents(p, cu_q), data.kv_docs = key_documents(p, cu_kv);
  list_of_tiles list;
  cuda_common::work_list_kernel<cpu, recipe::tile, of_queries> kernel{data, nullptr, list.tickets, 2};
  list.tiles.resize(static_cast<std::size_t>(kernel.items()));
  kernel.tiles = list.tiles.data();
  cpu::context nothing(nullptr, 0);
  for (std::int64_t i = 0; i < kernel.items(); ++i) kernel(nothing, i);
  return list;
}

/// What token `i` sees according to the mask, cut to nothing where it is not there.
key_range seen_by(const key_ranges& ranges, const head_of_document& at, bool queries, std::int64_t i) {
  if (queries) return ranges.row(i);
  return i < at.kv.length && at.q.length > 0 ? ranges.rows_of(i) : key_range{0, 0};
}

template <bool of_queries>
void check(const problem& p, const offsets& cu_q = {}, const offsets& cu_kv = {}) {
  constexpr int tile = cuda_common::tile_tokens;
  const list_of_tiles list = make_list<of_queries>(p, cu_q, cu_kv);
  CHECK(list.tickets[0] == 0);
  CHECK(list.tickets[1] == 0);
  pass_data<recipe::tile> data{};
  data.problem = p;
  data.q_docs = query_documents(p, cu_q), data.kv_docs = key_documents(p, cu_kv);
  const documents& own = of_queries ? data.q_docs : data.kv_docs;
  const documents& others = of_queries ? data.kv_docs : data.q_docs;
  const std::int64_t slots = own.slots(tile), heads = of_queries ? p.h_q : p.h_kv;

  std::set<std::pair<std::int64_t, std::int64_t>> wanted, found;  // (head, slot)
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t slot = 0; slot < slots; ++slot)
      if (own.tile_at(slot, tile).tokens > 0) wanted.insert({h, slot});
  for (const tile_work& w : list.tiles) {
    if (w.tokens == 0) continue;
    const std::int64_t slot = w.image - w.head * slots;
    CHECK(found.insert({w.head, slot}).second);
    const token_tile at = own.tile_at(slot, tile);
    CHECK(at.document == w.document);
    CHECK(at.first == w.first);
    CHECK(at.tokens == w.tokens);

    const std::int64_t group = p.group();
    const head_of_document head = data.head(w.document, of_queries ? w.head : w.head * group);
    const key_ranges ranges = data.ranges(head);
    const std::int64_t seen_length = of_queries ? head.kv.length : head.q.length;
    std::int64_t first = seen_length, last = 0;  // of what any token sees
    for (int i = 0; i < w.tokens; ++i) {
      const key_range want = seen_by(ranges, head, of_queries, w.first + i);
      const cuda_common::row_keys got = w.sees(w.first + i);
      CHECK(got.last - got.first == want.last - want.first);
      if (want.last > want.first) {
        CHECK(got.first == want.first);
        first = std::min<std::int64_t>(first, want.first), last = std::max<std::int64_t>(last, want.last);
      }
    }
    CHECK(w.sees(w.length).last == 0);
    if (last > first) {
      CHECK(w.seen.first * tile <= first);
      CHECK(w.seen.first == first / tile);
      CHECK(w.seen.last == (last + tile - 1) / tile);
      const std::int64_t first_slot = others.first_slot(w.document, tile);
      CHECK(w.first_seen == (of_queries ? head.h_kv * others.slots(tile) + first_slot : first_slot));
    } else {
      CHECK(w.seen.last <= w.seen.first);
    }
    for (int half = 0; half < 2; ++half)
      for (int t = w.seen.first; t < w.seen.last; ++t) {
        bool all = true;
        for (int i = half * tile / 2; i < (half + 1) * tile / 2; ++i) {
          const cuda_common::row_keys sees = w.sees(w.first + i);
          all = all && i < w.tokens && sees.first <= t * tile && sees.last >= (t + 1) * tile;
        }
        CHECK(cuda_common::holds_tile(w.seen_by_all[half], t) == all);
      }
  }
  CHECK(found == wanted);
}

void check_both(const problem& p) {
  check<true>(p);
  check<false>(p);
}

}  // namespace

TEST_CASE("the list of tiles has every tile once, with the mask's view of it") {
  std::mt19937 random(1);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int n = 0; n < 60; ++n) {
    problem p;
    p.b = 1 + below(3), p.h_kv = 1 + below(3), p.h_q = p.h_kv * (1 + below(3));
    p.s_q = 1 + below(500), p.s_kv = 1 + below(500);
    p.mask.causal = static_cast<causal_mask>(below(3));
    if (n % 2 == 1) p.mask.window_left = below(300);
    if (n % 3 == 1) p.mask.window_right = below(200);
    CAPTURE(n);
    check_both(p);
  }
}

TEST_CASE("the list of tiles: packed documents, an empty one, a tail") {
  const std::int32_t q_begin[] = {0, 130, 130, 300, 310}, kv_begin[] = {0, 64, 264, 264, 700};
  problem p;
  p.packed = true, p.b = 4, p.total_q = 333, p.total_kv = 720, p.h_q = 4, p.h_kv = 2;
  for (const causal_mask causal : {causal_mask::none, causal_mask::bottom_right}) {
    p.mask.causal = causal;
    check<true>(p, offsets_of(q_begin), offsets_of(kv_begin));
    check<false>(p, offsets_of(q_begin), offsets_of(kv_begin));
  }
}

TEST_CASE("the list of tiles: a shard far along a sequence of 2^40 tokens") {
  problem p;
  p.s_q = 200, p.s_kv = 300;
  p.mask.causal = causal_mask::top_left;
  p.shard.q_begin = std::int64_t{1} << 40, p.shard.s_q_total = p.shard.s_kv_total = std::int64_t{1} << 41;
  for (const std::int64_t keys_before : {std::int64_t{0}, std::int64_t{250}, std::int64_t{1} << 35}) {
    p.shard.kv_begin = p.shard.q_begin - keys_before;
    check_both(p);
    p.mask.window_left = 100;
    check_both(p);
    p.mask.window_left = -1;
  }
}
