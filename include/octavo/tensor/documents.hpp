// SPDX-License-Identifier: Apache-2.0
// Where tokens stand: batches [b, s] or packed documents by cumulative offsets, seen alike, and cut into tiles.
//
// A packed tensor may have rows past its last offset. They form one more document, the tail, that pairs with nothing:
// its query rows have no keys (O = 0, LSE = -inf, dQ = 0), its keys no queries (dK = dV = 0).
#pragma once

#include <octavo/tensor/problem.hpp>
#include <octavo/tensor/tensor.hpp>

OCTAVO_BEGIN_NAMESPACE

OCTAVO_HD constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// A run of tokens: the first one's row among all rows of the tensor, and how many.
struct token_run {
  std::int64_t begin = 0;
  std::int64_t length = 0;
};

/// A tile of tokens of one document.
struct token_tile {
  std::int64_t document = 0;
  std::int64_t first = 0;  ///< first token, counted from the document's own first
  int tokens = 0;          ///< 0: this slot holds no tile
};

/// Tokens that one item adds up of a sum over a sequence: such sums are made of those of their parts, in order.
inline constexpr int part_tokens = 128;

/// The documents on one side (queries or keys) of a problem.
struct documents {
  std::int64_t count = 0;   ///< without the tail
  std::int64_t length = 0;  ///< tokens of each, when not packed
  std::int64_t total = 0;   ///< rows in all, when packed
  bool packed = false;
  offsets cu{};

  OCTAVO_HD token_run run(std::int64_t document) const {
    if (!packed) return {document * length, length};
    const std::int64_t begin = cu[document];
    return {begin, (document == count ? total : cu[document + 1]) - begin};
  }
  OCTAVO_HD bool is_tail(std::int64_t document) const { return packed && document == count; }
  OCTAVO_HD std::int64_t rows() const { return packed ? total : count * length; }

  /// Slots for tiles of `tile` tokens, an upper bound that needs no look at the offsets: when packed, document i's
  /// tiles start at slot floor(offset_i / tile) + i, so that a tile's slot follows from its document alone.
  OCTAVO_HD std::int64_t slots(int tile) const {
    return packed ? total / tile + count + 1 : count * ceil_div(length, tile);
  }
  OCTAVO_HD std::int64_t first_slot(std::int64_t document, int tile) const {
    return packed ? cu[document] / tile + document : document * ceil_div(length, tile);
  }
  OCTAVO_HD token_tile tile_at(std::int64_t slot, int tile) const {
    const std::int64_t document = packed ? document_of(slot, tile) : slot / ceil_div(length, tile);
    const std::int64_t first = (slot - first_slot(document, tile)) * tile;
    const std::int64_t left = run(document).length - first;
    return {document, first, static_cast<int>(left < 0 ? 0 : left < tile ? left : tile)};
  }
  /// Where a token's statistic of head h stands in [b, heads, s] or, packed, [heads, total].
  OCTAVO_HD std::int64_t statistic(std::int64_t document, std::int64_t h, std::int64_t heads,
                                   std::int64_t token) const {
    return packed ? h * total + cu[document] + token : (document * heads + h) * length + token;
  }

 private:
  OCTAVO_HD std::int64_t document_of(std::int64_t slot, int tile) const {
    std::int64_t low = 0, high = count;  // the last document whose first slot is not beyond `slot`
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (first_slot(middle, tile) <= slot)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

inline documents query_documents(const problem& p, const offsets& cu) { return {p.b, p.s_q, p.total_q, p.packed, cu}; }
inline documents key_documents(const problem& p, const offsets& cu) { return {p.b, p.s_kv, p.total_kv, p.packed, cu}; }

/// Elements before the first of (document, token, h) in a tensor of these documents.
template <class Tensor>
OCTAVO_HD std::int64_t element_offset(const Tensor& t, const documents& docs, std::int64_t document, std::int64_t token,
                                      std::int64_t h) {
  const std::int64_t row =
      docs.packed ? (docs.cu[document] + token) * t.stride_s : document * t.stride_b + token * t.stride_s;
  return row + h * t.stride_h;
}

OCTAVO_END_NAMESPACE
