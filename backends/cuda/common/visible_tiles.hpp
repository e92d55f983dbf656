// SPDX-License-Identifier: Apache-2.0
// Which tiles a block works on: those that its rows or keys see (simt/visible.hpp), and where a block's number leads.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/simt/visible.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

using simt::longest_document, simt::row_keys, simt::tile_run, simt::tile_tokens, simt::visible_tiles;

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
