// SPDX-License-Identifier: Apache-2.0
// How a thread of the quantise kernel reads its share of a tile, from tensors of any strides and alignment.
#pragma once

#include <octavo/backends/cuda/common/visible_tiles.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/fp16.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// Which tile of which head. As every tile has a block, all numbers but that of the first token fit in an int.
struct tile_place {
  int document, h;
  int number;  ///< among the tiles of the document
  int tokens;
  int index;  ///< among the tiles of all heads, as images and factors have them

  OCTAVO_DEVICE std::int64_t first() const { return static_cast<std::int64_t>(number) * tile_tokens; }
};

/// Where a thread's channels of a tile's tokens stand in a tensor of `size`-byte elements. Byte: char, or const char.
template <class Byte>
struct tile_rows {
  Byte* first;
  std::int64_t stride;
  bool wide;  ///< a thread's channels are aligned like 16 bytes, or like themselves if they are fewer

  template <class Tensor, class Share>
  OCTAVO_DEVICE tile_rows(const Tensor& t, int size, const documents& docs, const tile_place& at, const Share& share)
      : first(static_cast<Byte*>(t.data) +
              (element_offset(t, docs, at.document, at.first(), at.h) + share.channel()) * size),
        stride(t.stride_s * size) {
    const auto bytes = static_cast<std::uintptr_t>(share.channels * size), alignment = bytes < 16 ? bytes : 16;
    wide = (reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(stride)) % alignment == 0;
  }
  OCTAVO_DEVICE Byte* operator[](int token) const { return first + token * stride; }
};

/// N words as they stand in memory, of elements of the unsigned type Unit.
template <bool wide, class Unit, int N>
OCTAVO_DEVICE void load_words(const char* from, std::uint32_t (&to)[N]) {
  constexpr int step = !wide ? sizeof(Unit) : N * 4 < 16 ? N * 4 : 16;
  if constexpr (step >= 4) {
    OCTAVO_UNROLL
    for (int i = 0; i < N * 4; i += step) std::memcpy(to + i / 4, __builtin_assume_aligned(from + i, step), step);
  } else {
    OCTAVO_UNROLL
    for (int i = 0; i < N * 4; i += step) {
      Unit unit;
      std::memcpy(&unit, __builtin_assume_aligned(from + i, step), step);
      to[i / 4] = (i % 4 == 0 ? 0 : to[i / 4]) | static_cast<std::uint32_t>(unit) << i % 4 * 8;
    }
  }
}

/// The eight numbers that stand in these words.
OCTAVO_DEVICE void decode_words(bf16, const std::uint32_t (&words)[4], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = detail::bit_cast<float>(words[i] << 16);
    x[2 * i + 1] = detail::bit_cast<float>(words[i] & 0xffff'0000u);
  }
}
OCTAVO_DEVICE void decode_words(fp16, const std::uint32_t (&words)[4], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) ptx::unpack_f16(words[i], x[2 * i], x[2 * i + 1]);
}
OCTAVO_DEVICE void decode_words(float, const std::uint32_t (&words)[8], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 8; ++i) x[i] = detail::bit_cast<float>(words[i]);
}

/// Element i of an array in registers, whose number must be known when compiled, or else all are looked through.
template <class T, std::size_t N>
OCTAVO_DEVICE void put(T (&array)[N], int i, T x) {
  OCTAVO_UNROLL
  for (int j = 0; j < static_cast<int>(N); ++j) array[j] = j == i ? x : array[j];
}
template <class T, std::size_t N>
OCTAVO_DEVICE T pick(const T (&array)[N], int i) {
  T x = array[0];
  OCTAVO_UNROLL
  for (int j = 1; j < static_cast<int>(N); ++j) x = j == i ? array[j] : x;
  return x;
}

/// A thread's numbers before they are scaled. kept: in registers; else they are read at every look, from the cache
/// after the first. In the place of tokens that the tile lacks its last one is read.
template <class T, bool shifted, bool kept, class Share>
class tile_numbers {
  static constexpr int row_words = Share::channels * sizeof(T) / 4;
  using unit = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;

 public:
  /// How far loops over a thread's tokens are to be unrolled: what is in registers has no numbers.
  static constexpr int unrolled = kept ? Share::tokens : 1;

  /// shift: of this head, subtracted from every token if `shifted`; null for zeros, which change no bit.
  OCTAVO_DEVICE tile_numbers(const Share& share, const tile_rows<const char>& rows, int tokens,
                             [[maybe_unused]] const float* shift)
      : share_(share), rows_(rows), tokens_(tokens) {
    if constexpr (kept) {
      if (rows_.wide)
        read_all<true>();
      else
        read_all<false>();
    }
    if constexpr (shifted) {
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c) shift_[c] = shift == nullptr ? 0.0f : shift[share.channel() + c];
    }
  }
  /// The numbers of the thread's i-th token.
  OCTAVO_DEVICE void get(int i, float (&to)[Share::channels]) {
    std::uint32_t(&words)[row_words] = words_[kept ? i : 0];
    if constexpr (!kept) {
      if (rows_.wide)
        load_words<true, unit>(row(i), words);
      else
        load_words<false, unit>(row(i), words);
    }
    decode_words(T{}, words, to);
    if constexpr (shifted) {
      OCTAVO_UNROLL
      for (int c = 0; c < Share::channels; ++c) to[c] -= shift_[c];
    }
  }
  /// Between one look at all numbers and the next.
  OCTAVO_DEVICE void look_again() {
    OCTAVO_UNROLL
    for (auto& words : words_)
      for (std::uint32_t& word : words) ptx::keep_as_is(word);
  }

 private:
  OCTAVO_DEVICE const char* row(int i) const {
    const int token = share_.token(i);
    return rows_[token < tokens_ ? token : tokens_ - 1];
  }
  template <bool wide>
  OCTAVO_DEVICE void read_all() {
    OCTAVO_UNROLL
    for (int i = 0; i < Share::tokens; ++i) load_words<wide, unit>(row(i), words_[i]);
  }

  const Share& share_;
  const tile_rows<const char> rows_;
  const int tokens_;
  float shift_[shifted ? Share::channels : 1];
  std::uint32_t words_[kept ? Share::tokens : 1][row_words];
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
