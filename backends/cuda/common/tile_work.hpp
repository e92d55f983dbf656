// SPDX-License-Identifier: Apache-2.0
// Resident blocks: each multiprocessor keeps one block, which draws tiles of 128 tokens from a list, one after another.
// While a tile's results are written the next tile's operands are already under way, and what follows from where a tile
// stands has been worked out by a small kernel before, once, in wide numbers.
#pragma once

#include <octavo/backends/cuda/common/ring.hpp>
#include <octavo/backends/cuda/common/visible_tiles.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// One tile of query rows, which see keys; in dK and dV a tile of keys, which see query rows. `Seen` below is that other
/// side.
struct alignas(16) tile_work {
  std::int32_t document, head;
  std::int32_t first, tokens;  ///< of the tile in its document; 0 tokens: there is no tile
  std::int32_t image;          ///< the tile's, among those of its tensor
  std::int32_t first_seen;     ///< of the document's first seen tile: the image, in dK and dV the slot
  tile_run seen;               ///< seen tiles that any token of the tile sees
  row_keys seen_by_all[2];  ///< seen tokens that every token of a half (64 tokens) sees; none where a half is not full
  std::int32_t begin, end;  ///< token i sees [i + begin, i + end), cut to [0, seen_length)
  std::int32_t length, seen_length;  ///< tokens of the document on either side

  /// What a token sees, counted from the document's first.
  OCTAVO_HD row_keys sees(int token) const {
    if (token >= length) return {0, 0};
    const int from = cut(token + begin), to = cut(token + end);
    return {from, to < from ? from : to};
  }

 private:
  OCTAVO_HD int cut(int token) const { return token < 0 ? 0 : token > seen_length ? seen_length : token; }
};

/// Whether a run of tokens has the whole of a tile.
OCTAVO_HD inline bool holds_tile(const row_keys& tokens, int tile) {
  return tile * tile_tokens >= tokens.first && (tile + 1) * tile_tokens <= tokens.last;
}

/// The list from which the blocks of a kernel draw.
struct work_list {
  const tile_work* tiles = nullptr;
  std::int32_t* ticket = nullptr;  ///< how many have been drawn
  std::int64_t count = 0;

  /// Blocks of a kernel on a device of so many multiprocessors, one on each.
  std::int64_t blocks(int multiprocessors) const { return count < multiprocessors ? count : multiprocessors; }
  OCTAVO_DEVICE int draw() const { return ptx::atomic_add(ticket, 1); }
};

/// The tile that a block works on and, in the second of two places, the next one, in shared memory. No tokens: there are
/// no more tiles. What else belongs to a tile is copied to the same place, and counted at the same barrier.
template <int places>
struct drawn_tiles {
  tile_work work[places];
  ring<places> at;

  /// The copying thread: bring_tile(tile, place, barrier) starts the copies of what belongs to a tile and arrives at
  /// the barrier expecting `expected` bytes more, the tile's own; bring_seen(tile) those of what it sees.
  template <class Tile, class Seen>
  OCTAVO_DEVICE void draw_all(const work_list& list, Tile bring_tile, Seen bring_seen) {
    ring_place<places> to;
    OCTAVO_NO_UNROLL
    for (int n = list.draw(); n < list.count; n = list.draw()) {
      const tile_work& tile = list.tiles[n];
      if (tile.tokens == 0) continue;
      to.wait_empty(at);
      bring_tile(tile, to.stage, at.full[to.stage]);
      ptx::bulk_load(&work[to.stage], &tile, sizeof tile, at.full[to.stage]);
      to.advance();
      bring_seen(tile);
    }
    to.wait_empty(at);
    work[to.stage].tokens = 0;
    at.full[to.stage].arrive();
  }
  static constexpr int expected = sizeof(tile_work);

  /// The readers: visit(tile, place) for every tile. visit releases the place (`at`) when it has been read.
  template <class Visit>
  OCTAVO_DEVICE void visit_all(Visit visit) {
    OCTAVO_NO_UNROLL
    for (ring_place<places> from;; from.advance()) {
      from.wait_full(at);
      if (work[from.stage].tokens == 0) return;
      visit(work[from.stage], from);
    }
  }
};

/// Makes the list of a pass: of_queries, tiles of query rows; else of keys. The longest rows of a causal mask first.
template <class B, class Recipe, bool of_queries>
struct work_list_kernel {
  pass_data<Recipe> data;
  tile_work* tiles = nullptr;
  std::int32_t* tickets = nullptr;  ///< of all kernels that draw from the list
  int ticket_count = 0;

  OCTAVO_HD const documents& own() const { return of_queries ? data.q_docs : data.kv_docs; }
  OCTAVO_HD std::int64_t heads() const { return of_queries ? data.problem.h_q : data.problem.h_kv; }
  OCTAVO_HD std::int64_t items() const { return own().slots(tile_tokens) * heads(); }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    if (item == 0)
      for (int i = 0; i < ticket_count; ++i) tickets[i] = 0;
    // Few heads at a time, so that blocks that run together share what they see (on an H200 sixteen heads of 16,384 tokens
    // cost 3 %); of those the long tiles before the short ones, which even out when the blocks end.
    const std::int64_t slots = own().slots(tile_tokens), documents = own().count > 0 ? own().count : 1;
    const std::int64_t wanted = tiles_together / (slots / documents + 1) + 1;  // heads: 1 at 16k, 4 at 4k
    const std::int64_t before = item / (wanted * slots) * wanted;
    const std::int64_t together = heads() - before < wanted ? heads() - before : wanted;
    const std::int64_t nth = (item - before * slots) / together, h = before + (item - before * slots) % together;
    tiles[item] = work_of(h, of_queries ? slots - 1 - nth : nth);
  }

 private:
  /// Tiles of a document in so many heads as are worked on together: about as many as there are multiprocessors.
  static constexpr std::int64_t tiles_together = 128;

  OCTAVO_HD tile_work work_of(std::int64_t h, std::int64_t slot) const {
    const token_tile tile = own().tile_at(slot, tile_tokens);
    tile_work w{};
    if (tile.tokens == 0) return w;
    const std::int64_t group = data.problem.group();
    const head_of_document at = data.head(tile.document, of_queries ? h : h * group);
    const key_ranges ranges = data.ranges(at);
    const token_run& seen = of_queries ? at.kv : at.q;
    const documents& others = of_queries ? data.kv_docs : data.q_docs;
    const std::int64_t first_slot = seen.length == 0 ? 0 : others.first_slot(at.document, tile_tokens);
    w.document = static_cast<std::int32_t>(tile.document), w.head = static_cast<std::int32_t>(h);
    w.first = static_cast<std::int32_t>(tile.first), w.tokens = tile.tokens;
    w.image = static_cast<std::int32_t>(h * own().slots(tile_tokens) + slot);
    w.first_seen =
        static_cast<std::int32_t>(of_queries ? at.h_kv * others.slots(tile_tokens) + first_slot : first_slot);
    w.length = static_cast<std::int32_t>(of_queries ? at.q.length : at.kv.length);
    w.seen_length = static_cast<std::int32_t>(seen.length);
    w.begin = near(of_queries ? ranges.first_offset() : 1 - ranges.last_offset());
    w.end = near(of_queries ? ranges.last_offset() : 1 - ranges.first_offset());
    // Runs only move forward: the first token's ends first, the last one's begins last.
    const int last = w.first + w.tokens - 1;
    const int seen_first = w.sees(w.first).first, seen_last = w.sees(last).last;
    if (seen_last > seen_first) w.seen = {seen_first / tile_tokens, (seen_last + tile_tokens - 1) / tile_tokens};
    for (int half = 0; half < 2; ++half)
      if (tile_tokens / 2 * (half + 1) <= w.tokens)
        w.seen_by_all[half] = {w.sees(w.first + tile_tokens / 2 * (half + 1) - 1).first,
                               w.sees(w.first + tile_tokens / 2 * half).last};
    return w;
  }
  /// Documents are shorter than longest_document: what is farther away is as good as that far.
  OCTAVO_HD static std::int32_t near(std::int64_t x) {
    return static_cast<std::int32_t>(x < -longest_document  ? -longest_document
                                     : x > longest_document ? longest_document
                                                            : x);
  }
};

/// A pass's list, and as many counters as kernels draw from it.
template <class B, class Recipe, bool of_queries>
struct made_list {
  tile_work* tiles = nullptr;
  std::int32_t* tickets = nullptr;
  std::int64_t count = 0;
  int kernels = 0;

  void carve(detail::carver& memory, std::int64_t tiles_of_all_heads, int drawing_kernels) {
    count = tiles_of_all_heads, kernels = drawing_kernels;
    tiles = memory.take<tile_work>(count);
    tickets = memory.take<std::int32_t>(kernels);
  }
  work_list_kernel<B, Recipe, of_queries> maker(const pass_data<Recipe>& data) const {
    return {data, tiles, tickets, kernels};
  }
  work_list of(int kernel) const { return {tiles, tickets + kernel, count}; }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
