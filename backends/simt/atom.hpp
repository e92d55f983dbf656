// SPDX-License-Identifier: Apache-2.0
// The matrix instruction as the lane-level kernels see it: a square product whose operands are both contracted along
// their bytes,
//
//     D[size][size] += L[size][depth] R[size][depth]^T
//
// made of as many instructions of the machine as it takes (two m16n8k32 on NVIDIA, two 16x16x32 on CDNA3). Both operands
// lie in the lanes alike: a lane has `words` 32-bit words of each, a word holds four elements that follow each other along
// the contraction, and 16 bytes of a lane are one piece of an image (images.hpp). So the same image serves as left and as
// right operand, and a lane fetches it by plain 16-byte reads of shared memory without bank conflicts.
//
// An atom is a struct of constants and static functions:
//
//     size, depth, words, sums      as above; sums: FP32 accumulators of a lane. words is 4 (one piece) or 8 (two)
//     unit                          what a raw sum is multiplied by to be the sum of products of the OCP numbers: 1, or 4
//                                   where the unit reads each byte as half of its OCP value (FNUZ)
//     long_sums                     whether d keeps the digits of FP32 however many products follow each other; where it
//                                   does not, a product runs over 128 tokens at most and is then added in FP32
//     block_scaled                  whether mma takes an E8M0 scale per 32 elements of the contraction
//     operand_row(lane, word)       row of a word, and its first element along the contraction; the vendor's layout,
//     operand_depth(lane, word)     with its source beside it
//     sum_row(lane, i)              row (of L) and column (row of R) of accumulator i
//     sum_column(lane, i)
//     mma(d, l, r)                  all lanes of a warp: float (&)[sums], const std::uint32_t (&)[words] twice
//     convert_left(l, to)           only for plans with rows_converted: l in 2 * words as the unit multiplies it, and the
//     mma_converted(d, to, r)       product of it
//     mma(d, l, r, ls, rs)          block_scaled: also an E8M0 of each operand, in the lowest byte of a word: of row
//     scale_row(lane)               scale_row, for the scale_block-th 32 elements of the depth. scale_row is one of the
//     scale_block(lane)             rows of which the lane has accumulators
//
// What follows from the layout is derived here and checked when compiled, whatever the vendor: which rows a lane's
// accumulators are of, which lanes share a row, and the order of tokens under which accumulators, rounded in place, are
// the left operand of the next product.
#pragma once

#include <octavo/backends/simt/qualifiers.hpp>

#include <concepts>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class A>
concept Atom = requires(float (&d)[A::sums], const std::uint32_t (&x)[A::words]) {
  { A::size } -> std::convertible_to<int>;
  { A::depth } -> std::convertible_to<int>;
  { A::unit } -> std::convertible_to<float>;
  { A::block_scaled } -> std::convertible_to<bool>;
  { A::long_sums } -> std::convertible_to<bool>;
  { A::operand_row(0, 0) } -> std::same_as<int>;
  { A::operand_depth(0, 0) } -> std::same_as<int>;
  { A::sum_row(0, 0) } -> std::same_as<int>;
  { A::sum_column(0, 0) } -> std::same_as<int>;
};

/// What the layout functions of an atom say, for warps of `lanes` lanes.
template <class A, int lanes>
struct layout {
  static constexpr int word_bytes = 4, piece_words = 4, piece_bytes = 16;
  static constexpr int size = A::size, depth = A::depth, words = A::words, sums = A::sums;
  static constexpr int pieces = words / piece_words;  ///< of an operand in a lane
  static constexpr int block_bytes = size * depth;    ///< of an operand, in all lanes

  static_assert(words % piece_words == 0 && lanes * words * word_bytes == block_bytes,
                "Atom: an operand must fill whole 16-byte pieces of every lane");
  static_assert(lanes * sums == size * size, "Atom: the accumulators of all lanes must be size x size");

  /// Where word `word` of `lane` stands in an operand's block: pieces of all lanes, one after another.
  static constexpr int byte_of_word(int lane, int word) {
    return (word / piece_words * lanes + lane) * piece_bytes + word % piece_words * word_bytes;
  }

 private:
  struct tables {
    int word_at[size][depth / word_bytes] = {};  ///< byte of the word that holds row r, elements 4 k to 4 k + 3
    int order[depth] = {};                       ///< token of each slot of the contraction
    int row_slot[sums] = {};                     ///< which of the lane's rows accumulator i is of
    int first_of_slot[size] = {};                ///< an accumulator of each
    int byte_sum[words * word_bytes] = {};       ///< accumulator (block, i) that becomes a byte: block * sums + i
    int slots = 0;
    unsigned row_lanes = 0;  ///< bits of the lane's number in which lanes that share a row differ
    bool complete = true, separable = true, aligned = true;
  };
  /// Accumulator blocks that lie side by side along one depth.
  static constexpr int blocks_per_depth = depth / size;

  static constexpr tables derive() {
    tables t;
    bool word_seen[size][depth / word_bytes] = {}, sum_seen[size][size] = {};
    for (int lane = 0; lane < lanes; ++lane) {
      for (int w = 0; w < words; ++w) {
        const int row = A::operand_row(lane, w), k = A::operand_depth(lane, w);
        if (k % word_bytes != 0 || word_seen[row][k / word_bytes]) t.complete = false;
        word_seen[row][k / word_bytes] = true;
        t.word_at[row][k / word_bytes] = byte_of_word(lane, w);
      }
      for (int i = 0; i < sums; ++i) {
        const int row = A::sum_row(lane, i), column = A::sum_column(lane, i);
        if (sum_seen[row][column]) t.complete = false;
        sum_seen[row][column] = true;
        // A row is the lane's own plus the register's own, and so is a column.
        if (row != A::sum_row(lane, 0) + A::sum_row(0, i) - A::sum_row(0, 0)) t.separable = false;
        if (column != A::sum_column(lane, 0) + A::sum_column(0, i) - A::sum_column(0, 0)) t.separable = false;
      }
    }
    for (int i = 0; i < sums; ++i) {
      int slot = 0;
      while (slot < t.slots && A::sum_row(0, t.first_of_slot[slot]) != A::sum_row(0, i)) ++slot;
      if (slot == t.slots) t.first_of_slot[t.slots++] = i;
      t.row_slot[i] = slot;
    }
    for (int bit = 1; bit < lanes; bit *= 2)
      if (A::sum_row(bit, 0) == A::sum_row(0, 0)) t.row_lanes |= static_cast<unsigned>(bit);
    // The n-th accumulator of a row, over the blocks along a depth, becomes the n-th byte of that row's words.
    for (int slot = 0; slot < t.slots; ++slot) {
      int block = 0, i = -1;
      for (int w = 0; w < words; ++w) {
        if (A::operand_row(0, w) != A::sum_row(0, t.first_of_slot[slot])) continue;
        for (int byte = 0; byte < word_bytes; ++byte) {
          do {
            if (++i == sums) i = 0, ++block;
          } while (block < blocks_per_depth && t.row_slot[i] != slot);
          if (block == blocks_per_depth) {
            t.aligned = false;
            return t;
          }
          t.byte_sum[w * word_bytes + byte] = block * sums + i;
          for (int lane = 0; lane < lanes; ++lane) {
            if (A::operand_row(lane, w) != A::sum_row(lane, i)) t.aligned = false;
            const int k = A::operand_depth(lane, w) + byte, token = block * size + A::sum_column(lane, i);
            if (slot > 0 && t.order[k] != token) t.aligned = false;
            t.order[k] = token;
          }
        }
      }
    }
    return t;
  }
  static constexpr tables derived = derive();
  static_assert(derived.complete, "Atom: each element must be in exactly one lane and register");
  static_assert(derived.separable, "Atom: a row (a column) must be the lane's part plus the register's part");
  static_assert(derived.aligned, "Atom: a lane's accumulators must be rows and counts of its left operand's words");

 private:
  // Tables that device code looks into, packed into words: an array would be memory there.
  struct packed {
    std::uint64_t row_slot = 0;         ///< 4 bits per accumulator
    std::uint64_t row_of_slot = 0;      ///< 8 bits per slot
    std::uint64_t sum_of_byte[4] = {};  ///< 8 bits per byte, two words each
  };
  static constexpr packed pack() {
    packed p;
    for (int i = 0; i < sums; ++i) p.row_slot |= static_cast<std::uint64_t>(derived.row_slot[i]) << 4 * i;
    for (int slot = 0; slot < derived.slots; ++slot)
      p.row_of_slot |= static_cast<std::uint64_t>(A::sum_row(0, derived.first_of_slot[slot]) - A::sum_row(0, 0))
                       << 8 * slot;
    for (int byte = 0; byte < words * word_bytes; ++byte)
      p.sum_of_byte[byte / 8] |= static_cast<std::uint64_t>(derived.byte_sum[byte]) << byte % 8 * 8;
    return p;
  }
  static constexpr std::uint64_t row_slots_packed = pack().row_slot, rows_packed = pack().row_of_slot;
  static constexpr std::uint64_t bytes_packed_0 = pack().sum_of_byte[0], bytes_packed_1 = pack().sum_of_byte[1];
  static constexpr std::uint64_t bytes_packed_2 = pack().sum_of_byte[2], bytes_packed_3 = pack().sum_of_byte[3];
  static_assert(sums <= 16 && derived.slots <= 8 && words <= 8, "Atom: more accumulators, rows or words than foreseen");
  /// The lane that holds the next row of an operand in the same word.
  static constexpr int find_next_row() {
    for (int lane = 1; lane < lanes; ++lane)
      if (A::operand_row(lane, 0) == A::operand_row(0, 0) + 1 && A::operand_depth(lane, 0) == A::operand_depth(0, 0))
        return lane;
    return 0;
  }

 public:
  /// Rows that a lane has accumulators of.
  static constexpr int row_slots = derived.slots;
  /// Lanes that hold a row between them differ in these bits of their number.
  static constexpr unsigned row_lanes = derived.row_lanes;
  /// Lanes between one row of an operand and the next.
  static constexpr int lane_of_next_row = find_next_row();

  /// Byte of (row, k) in an operand's block. On the host.
  static constexpr int byte_at(int row, int k) { return derived.word_at[row][k / word_bytes] + k % word_bytes; }
  /// The token of a run of `depth` that stands in slot k of a column image, where accumulators rounded in place meet it.
  /// On the host.
  static constexpr int token_of_slot(int k) { return derived.order[k]; }

  /// The accumulator, counted over the blocks along a depth, that becomes byte `byte` of word `word` of a left operand.
  OCTAVO_HD static constexpr int sum_of_byte(int word, int byte) {
    const std::uint64_t of_words = word < 2   ? bytes_packed_0
                                   : word < 4 ? bytes_packed_1
                                   : word < 6 ? bytes_packed_2
                                              : bytes_packed_3;
    return static_cast<int>(of_words >> (word % 2 * 4 + byte) * 8 & 0xff);
  }
  /// The token that stands in byte `byte` of a lane's word `word` of a column image: token_of_slot by arithmetic.
  OCTAVO_HD static constexpr int token_of(int lane, int word, int byte) {
    const int sum = sum_of_byte(word, byte);
    return sum / sums * size + A::sum_column(lane, sum % sums);
  }
  /// Which of the lane's rows accumulator i is of.
  OCTAVO_HD static constexpr int row_slot(int i) { return static_cast<int>(row_slots_packed >> 4 * i & 15); }
  /// A row is row_of_lane + row_of_slot, a column column_of_lane + column_of_sum.
  OCTAVO_HD static constexpr int row_of_slot(int slot) { return static_cast<int>(rows_packed >> 8 * slot & 0xff); }
  OCTAVO_HD static constexpr int column_of_sum(int i) { return A::sum_column(0, i) - A::sum_column(0, 0); }
  OCTAVO_HD static constexpr int row_of_lane(int lane) { return A::sum_row(lane, 0); }
  OCTAVO_HD static constexpr int column_of_lane(int lane) { return A::sum_column(lane, 0); }

  /// Whether a lane gives the scale of the slot-th of its rows, block `block` of the depth.
  OCTAVO_HD static constexpr bool gives_scale(int lane, int slot, int block) {
    return A::scale_row(lane) == row_of_lane(lane) + row_of_slot(slot) && A::scale_block(lane) == block;
  }
  /// Whether accumulators rounded in place can have a scale per 32 tokens: those of a block of 32 stay in one block, and
  /// each row and block has a lane, one that holds the row, for its scale.
  static constexpr bool scales_accumulators() {
    constexpr int block = 32;
    if constexpr (!A::block_scaled || depth % block != 0 || block % size != 0) {
      return false;
    } else {
      for (int k = 0; k < depth; ++k)
        if (token_of_slot(k) / block != k / block) return false;
      bool given[size][depth / block] = {};
      for (int lane = 0; lane < lanes; ++lane)
        for (int slot = 0; slot < row_slots; ++slot)
          for (int b = 0; b < depth / block; ++b)
            if (gives_scale(lane, slot, b)) given[row_of_lane(lane) + row_of_slot(slot)][b] = true;
      for (const auto& row : given)
        for (const bool one : row)
          if (!one) return false;
      return true;
    }
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
