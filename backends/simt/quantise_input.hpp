// SPDX-License-Identifier: Apache-2.0
// How a thread of the quantise kernel reads its share of a tile, from tensors of any strides and alignment.
#pragma once

#include <octavo/backends/simt/images.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/fp16.hpp>
#include <octavo/scaling/plane.hpp>

#include <cmath>
#include <cstring>
#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Which tile of which head.
struct tile_place {
  std::int64_t document, h;
  std::int64_t first;  ///< token of the document
  int tokens;
  std::int64_t index;  ///< among the tiles of all heads, as images and factors have them

  /// Of a block. Heads of the same tokens lie side by side in memory: they come one after another.
  template <class M, class Layout>
  OCTAVO_DEVICE static tile_place of_block(const Layout& at) {
    const auto block = static_cast<std::uint32_t>(M::block_index()), heads = static_cast<std::uint32_t>(at.heads);
    const std::int64_t slot = block / heads, h = block % heads;
    const token_tile tile = at.docs.tile_at(slot, tile_tokens);
    return {tile.document, h, tile.first, at.docs.is_tail(tile.document) ? 0 : tile.tokens,
            h * at.docs.slots(tile_tokens) + slot};
  }
};

/// A thread's share of a tile: eight channels of every rows_at_once-th token.
template <class M, int D>
struct tile_share {
  static constexpr int threads = 256, channels = 8;
  static constexpr int row_threads = D / channels, rows_at_once = threads / row_threads;
  static constexpr int tokens = tile_tokens / rows_at_once;
  /// Words of a token in shared memory: four more than it has, so that eight tokens begin in different banks.
  static constexpr int row_words = D / 4 + 4;
  static_assert(row_threads <= M::lanes && threads % M::lanes == 0, "the threads of a row are in one warp");

  int in_row = M::thread_index() % row_threads, first_token = M::thread_index() / row_threads;

  OCTAVO_DEVICE int channel() const { return channels * in_row; }
  OCTAVO_DEVICE int token(int i) const { return first_token + i * rows_at_once; }
  OCTAVO_DEVICE bool leads_row() const { return in_row == 0; }
  OCTAVO_DEVICE float max_over_row(float x) const { return max_over_threads<row_threads>(x); }
  /// The largest x of n neighbours.
  template <int n>
  OCTAVO_DEVICE static float max_over_threads(float x) {
    OCTAVO_UNROLL
    for (int bit = 1; bit < n; bit *= 2) x = fmaxf(x, M::shuffle_xor(x, bit));
    return x;
  }
};

/// Where a thread's channels of a tile's tokens stand in a tensor of `size`-byte elements.
struct tile_rows {
  const char* first;
  std::int64_t stride;
  bool wide;  ///< a thread's channels are aligned like 16 bytes, or like themselves if they are fewer

  template <class Tensor, class Layout, class Share>
  OCTAVO_DEVICE tile_rows(const Tensor& t, int size, const Layout& at, const tile_place& here, const Share& share)
      : first(static_cast<const char*>(t.data) +
              (element_offset(t, at.docs, here.document, here.first, here.h) + share.channel()) * size),
        stride(t.stride_s * size) {
    const auto bytes = static_cast<std::uintptr_t>(Share::channels * size), alignment = bytes < 16 ? bytes : 16;
    wide = (reinterpret_cast<std::uintptr_t>(first) | static_cast<std::uintptr_t>(stride)) % alignment == 0;
  }
  OCTAVO_DEVICE const char* operator[](int token) const { return first + token * stride; }
  OCTAVO_DEVICE char* writable(int token) const { return const_cast<char*>(first) + token * stride; }
};

/// N words as they stand in memory, of elements of the unsigned type Unit.
template <class Unit, int N>
OCTAVO_DEVICE void load_words(const char* from, bool wide, std::uint32_t (&to)[N]) {
  constexpr int step = N * 4 < 16 ? N * 4 : 16;
  if (wide) {
    OCTAVO_UNROLL
    for (int i = 0; i < N * 4; i += step) __builtin_memcpy(to + i / 4, __builtin_assume_aligned(from + i, step), step);
    return;
  }
  constexpr int size = sizeof(Unit);
  OCTAVO_UNROLL
  for (int i = 0; i < N * 4; i += size) {
    Unit unit;
    __builtin_memcpy(&unit, __builtin_assume_aligned(from + i, size), size);
    to[i / 4] = (i % 4 == 0 ? 0 : to[i / 4]) | static_cast<std::uint32_t>(unit) << i % 4 * 8;
  }
}

/// The eight numbers that stand in these words.
template <class M>
OCTAVO_DEVICE void decode_words(bf16, const std::uint32_t (&words)[4], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = detail::bit_cast<float>(words[i] << 16);
    x[2 * i + 1] = detail::bit_cast<float>(words[i] & 0xffff'0000u);
  }
}
template <class M>
OCTAVO_DEVICE void decode_words(fp16, const std::uint32_t (&words)[4], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 4; ++i) M::unpack_f16(words[i], x[2 * i], x[2 * i + 1]);
}
template <class M>
OCTAVO_DEVICE void decode_words(float, const std::uint32_t (&words)[8], float (&x)[8]) {
  OCTAVO_UNROLL
  for (int i = 0; i < 8; ++i) x[i] = detail::bit_cast<float>(words[i]);
}

/// A thread's numbers of a tile of a tensor of T, as they stand in memory. Zeros where there are none.
template <class M, class T, int D>
struct tile_numbers {
  using share_type = tile_share<M, D>;
  std::uint32_t words[share_type::tokens][share_type::channels * sizeof(T) / 4];
  float shift[share_type::channels] = {};
  std::uint32_t present = 0;  ///< bit i: the thread's i-th token exists

  /// shift_of_all: [documents, heads, d], subtracted from every token, or null.
  template <class Layout>
  OCTAVO_DEVICE tile_numbers(const const_tensor& x, const float* shift_of_all, const Layout& at, const tile_place& here,
                             const share_type& share) {
    using unit = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
    const tile_rows rows(x, sizeof(T), at, here, share);
    const bool in_d = share.channel() < at.d;
    if (shift_of_all != nullptr && in_d) {
      const float* from = shift_of_all + (here.document * at.heads + here.h) * at.d + share.channel();
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c) shift[c] = from[c];
    }
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      OCTAVO_UNROLL
      for (std::uint32_t& word : words[i]) word = 0;
      if (share.token(i) >= here.tokens) continue;
      present |= 1u << i;
      if (in_d) load_words<unit>(rows[share.token(i)], rows.wide, words[i]);
    }
  }
  /// Those of the i-th token, shifted.
  OCTAVO_DEVICE void get(int i, float (&x)[share_type::channels]) const {
    decode_words<M>(T{}, words[i], x);
    OCTAVO_UNROLL
    for (int c = 0; c < share_type::channels; ++c) x[c] = (present >> i & 1) != 0 ? x[c] - shift[c] : 0.0f;
  }
};

/// Eight numbers divided by a power of two as OCP codes: factor(c) is its reciprocal. NaN for an infinity.
template <class M, class E, class Factor>
OCTAVO_DEVICE void encode_channels(const float (&x)[8], Factor factor, std::uint32_t (&bytes)[2]) {
  float y[8];
  OCTAVO_UNROLL
  for (int c = 0; c < 8; ++c) y[c] = x[c] * factor(c) + (x[c] - x[c]);
  bytes[0] = M::template payload<E>(y[0], y[1], y[2], y[3]);
  bytes[1] = M::template payload<E>(y[4], y[5], y[6], y[7]);
}

/// Four words to an address that is a multiple of 16.
OCTAVO_DEVICE void store_piece(std::uint8_t* to, const std::uint32_t (&words)[4]) {
  __builtin_memcpy(__builtin_assume_aligned(to, 16), words, 16);
}

/// Transposes 4 x 4 bytes.
template <class M>
OCTAVO_DEVICE void transpose_bytes(const std::uint32_t (&row)[4], std::uint32_t (&column)[4]) {
  const std::uint32_t ab_low = M::permute_bytes(row[0], row[1], 0x5140),
                      ab_high = M::permute_bytes(row[0], row[1], 0x7362);
  const std::uint32_t cd_low = M::permute_bytes(row[2], row[3], 0x5140),
                      cd_high = M::permute_bytes(row[2], row[3], 0x7362);
  column[0] = M::permute_bytes(ab_low, cd_low, 0x5410);
  column[1] = M::permute_bytes(ab_low, cd_low, 0x7632);
  column[2] = M::permute_bytes(ab_high, cd_high, 0x5410);
  column[3] = M::permute_bytes(ab_high, cd_high, 0x7632);
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
