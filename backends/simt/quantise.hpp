// SPDX-License-Identifier: Apache-2.0
// Quantises a tensor for the lane-level schedules: from [b, s, heads, d] of T, or from a payload that the caller brings, to
// the images of its tiles, its scales as the loops want them, and what is not finite. Payloads and scales are to the last
// bit what `quantiser` (scaling/quantize.hpp) makes.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/simt/quantise_input.hpp>
#include <octavo/backends/simt/scale_bits.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// A block quantises one tile of one head: numbers in registers, then their payload in shared memory, from where it leaves
/// in each order that is wanted. Slots without a tile, and the tail of a packed tensor, are left alone.
template <class M, class Recipe, class E, int D>
struct quantise_kernel {
  using machine = M;
  static constexpr bool per_token = Recipe::scale_per == recipe::granularity::token;
  static_assert(per_token || Recipe::scale_per == recipe::granularity::tile128);
  using share_type = tile_share<M, D>;
  using at_lane = image_layout<M>;

  static constexpr int threads = share_type::threads, blocks_per_sm = D <= 64 ? 4 : D <= 128 ? 2 : 1;
  struct shared {
    std::uint32_t payload[tile_tokens][share_type::row_words];
    std::uint32_t amax[tile_tokens];  ///< bits of the largest finite magnitude of each token
    std::uint32_t nonfinite[4];       ///< as in tile_images
    std::uint32_t nonzero[4];         ///< bits of the tokens with a payload other than zeros
  };
  static constexpr int shared_bytes = sizeof(shared);

  scale_layout<Recipe> at;
  const_tensor x;                ///< of bf16, f16 or f32
  const float* shift = nullptr;  ///< [documents, heads, d] subtracted from every token (key centring), or null
  const_quantized given;         ///< a payload of E with its scales, instead of x
  quantized made;                ///< where payload and scales are kept row by row; each pointer may be null
  tile_images images;            ///< each pointer may be null
  /// The scales as floats, [heads][slots][scales_per_tile]; 1 for absent tokens. May be null.
  float* scale = nullptr;
  /// token: fold_exponent of every token, fold_of_zero for absent ones, [heads][slots][128]. May be null.
  float* fold = nullptr;

  std::int64_t blocks() const { return at.docs.slots(tile_tokens) * at.heads; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(M::shared());
    const tile_place here = place_of_block();
    if (here.tokens == 0) return;
    if (M::thread_index() < 4) memory.nonfinite[M::thread_index()] = memory.nonzero[M::thread_index()] = 0;
    M::sync_block();
    const share_type share;
    if (given)
      take_given(here, share, memory);
    else if (x.type == dtype::bf16)
      encode<bf16>(here, share, memory);
    else if (x.type == dtype::f16)
      encode<fp16>(here, share, memory);
    else
      encode<float>(here, share, memory);
    M::sync_block();
    write_factors(here, memory);
    if (!given && made.rowwise) write_kept(here, share, memory);
    if (images.rows != nullptr) write_rows(images.rows + here.index * image_bytes(tile_tokens, D), memory);
    if (images.columns != nullptr) write_columns(images.columns + here.index * image_bytes(tile_tokens, D), memory);
    if (images.plain != nullptr) write_plain(images.plain + here.index * image_bytes(tile_tokens, D), share, memory);
  }

 private:
  /// Above it, dP may overflow: such tokens are marked like those that are not finite, so that the loops look closely.
  static constexpr int largest_exponent = 50;
  static constexpr std::uint32_t nan_bytes = 0x7f7f7f7fu;

  /// Heads of the same tokens lie side by side in memory: they come one after another.
  OCTAVO_DEVICE tile_place place_of_block() const {
    const auto block = static_cast<std::uint32_t>(M::block_index()), heads = static_cast<std::uint32_t>(at.heads);
    const std::int64_t slot = block / heads, h = block % heads;
    const token_tile tile = at.docs.tile_at(slot, tile_tokens);
    return {tile.document, h, tile.first, at.docs.is_tail(tile.document) ? 0 : tile.tokens,
            h * at.docs.slots(tile_tokens) + slot};
  }
  OCTAVO_DEVICE std::int64_t scale_index(const tile_place& here, int token) const {
    const std::int64_t first = at.rowwise_first(here.document, here.h);
    return first + (per_token ? here.first + token : here.first / tile_tokens);
  }
  /// The scale of a token: from amax, or as given (a NaN makes its tokens NaN; the loops multiply by numbers only).
  OCTAVO_DEVICE e8m0 scale_of(const tile_place& here, const shared& memory, int token) const {
    if (token >= here.tokens) return e8m0::from_exponent(0);
    if (!given) return scale_for<E>(memory.amax[per_token ? token : 0]);
    const e8m0 scale{static_cast<const std::uint8_t*>(given.rowwise_scale)[scale_index(here, token)]};
    return scale.is_nan() ? e8m0::from_exponent(0) : scale;
  }

  /// The payload that the caller brings.
  OCTAVO_DEVICE void take_given(const tile_place& here, const share_type& share, shared& memory) const {
    const tile_rows rows(given.rowwise, 1, at, here, share);
    const auto* const scales = static_cast<const std::uint8_t*>(given.rowwise_scale);
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      std::uint32_t bytes[2] = {0, 0};
      const int token = share.token(i);
      if (token < here.tokens && share.channel() < at.d) {
        load_words<std::uint8_t>(rows[token], rows.wide, bytes);
        if (e8m0{scales[scale_index(here, token)]}.is_nan()) bytes[0] = bytes[1] = nan_bytes;
      }
      put(share, token, bytes, memory);
      const bool large = token < here.tokens && scale_of(here, memory, token).exponent() > largest_exponent;
      if (large && share.leads_row()) M::atomic_or(&memory.nonfinite[token / 32], 1u << token % 32);
    }
  }

  template <class T>
  OCTAVO_DEVICE void encode(const tile_place& here, const share_type& share, shared& memory) const {
    constexpr int words = share_type::channels * sizeof(T) / 4;
    using unit = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;
    const tile_rows rows(x, sizeof(T), at, here, share);
    const bool in_d = share.channel() < at.d;
    float shift_here[share_type::channels] = {};
    if (shift != nullptr && in_d) {
      const float* from = shift + (here.document * at.heads + here.h) * at.d + share.channel();
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c) shift_here[c] = from[c];
    }
    std::uint32_t numbers[share_type::tokens][words];
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      OCTAVO_UNROLL
      for (std::uint32_t& word : numbers[i]) word = 0;
      if (share.token(i) < here.tokens && in_d) load_words<unit>(rows[share.token(i)], rows.wide, numbers[i]);
    }
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      float row[share_type::channels], amax = 0;
      decode_words<M>(T{}, numbers[i], row);
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c) amax = finite_amax(amax, row[c] - shift_here[c]);
      const float of_row = share.max_over_row(amax);
      if (share.leads_row()) memory.amax[share.token(i)] = detail::bit_cast<std::uint32_t>(of_row);
    }
    M::sync_block();
    if constexpr (!per_token) share_amax(memory);
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const int token = share.token(i);
      const e8m0 scale = scale_of(here, memory, token);
      const float reciprocal = reciprocal_of(scale);
      float row[share_type::channels];
      decode_words<M>(T{}, numbers[i], row);
      std::uint32_t bytes[2] = {0, 0};
      if (token < here.tokens && in_d) {
        OCTAVO_UNROLL
        for (int c = 0; c < share.channels; ++c) {
          const float y = row[c] - shift_here[c];
          row[c] = y * reciprocal + (y - y);  // NaN for an infinity
        }
        bytes[0] = payload_word(row[0], row[1], row[2], row[3]);
        bytes[1] = payload_word(row[4], row[5], row[6], row[7]);
      }
      put(share, token, bytes, memory);
      if (scale.exponent() > largest_exponent && share.leads_row())
        M::atomic_or(&memory.nonfinite[token / 32], 1u << token % 32);
    }
  }
  /// Four OCP codes.
  OCTAVO_DEVICE static std::uint32_t payload_word(float a, float b, float c, float d) {
    return M::template payload<E>(a, b, c, d);
  }
  /// amax[0] becomes the largest of the tile's.
  OCTAVO_DEVICE static void share_amax(shared& memory) {
    std::uint32_t all = 0;
    for (int token = M::thread_index() % M::lanes; token < tile_tokens; token += M::lanes)
      all = detail::larger(all, memory.amax[token]);
    OCTAVO_UNROLL
    for (int bit = 1; bit < M::lanes; bit *= 2) all = detail::larger(all, M::shuffle_xor(all, bit));
    M::sync_block();
    if (M::thread_index() == 0) memory.amax[0] = all;
    M::sync_block();
  }
  /// A thread's eight bytes of a token, and what they say of it.
  OCTAVO_DEVICE static void put(const share_type& share, int token, const std::uint32_t (&bytes)[2], shared& memory) {
    std::uint32_t* to = &memory.payload[token][share.channel() / 4];
    to[0] = bytes[0], to[1] = bytes[1];
    const std::uint32_t bit = 1u << token % 32;
    if (((bytes[0] | bytes[1]) & 0x7f7f7f7fu) != 0) {
      if (per_token) M::atomic_or(&memory.nonzero[token / 32], bit);
      if ((nonfinite_bytes<E>(bytes[0]) | nonfinite_bytes<E>(bytes[1])) != 0)
        M::atomic_or(&memory.nonfinite[token / 32], bit);
    }
  }

  OCTAVO_DEVICE void write_factors(const tile_place& here, const shared& memory) const {
    const int thread = M::thread_index();
    if (images.nonfinite != nullptr && thread < 4) images.nonfinite[here.index * 4 + thread] = memory.nonfinite[thread];
    if (images.nonfinite_channels != nullptr && any_bit(memory.nonfinite) != 0) write_channels(here, memory);
    if (thread >= (per_token ? tile_tokens : 1)) return;
    const int token = thread;
    const bool absent = token >= here.tokens;
    const e8m0 of_token = scale_of(here, memory, token);
    if (!given && made.rowwise_scale != nullptr && !absent)
      static_cast<std::uint8_t*>(made.rowwise_scale)[scale_index(here, token)] = of_token.bits;
    const std::int64_t index = here.index * scales_per_tile<Recipe> + token;
    if (scale != nullptr)
      for (int copy = 0; copy < (per_token ? 1 : scales_per_tile<Recipe>); ++copy)
        scale[index + copy] = static_cast<float>(of_token);
    if constexpr (per_token) {
      const bool nonzero = (memory.nonzero[token / 32] >> token % 32 & 1) != 0;
      const int exponent = of_token.exponent();
      if (fold != nullptr) fold[index] = static_cast<float>(exponent == 0 && !nonzero ? fold_of_zero : exponent);
    }
  }
  /// For marked tokens, which channels are not finite.
  OCTAVO_DEVICE void write_channels(const tile_place& here, const shared& memory) const {
    std::uint32_t* to = images.nonfinite_channels + here.index * tile_tokens * (D / 32);
    for (int i = M::thread_index(); i < tile_tokens * (D / 32); i += threads) {
      const int token = i / (D / 32);
      if ((memory.nonfinite[token / 32] >> token % 32 & 1) == 0) continue;
      std::uint32_t bits = 0;
      for (int w = 0; w < 8; ++w) {
        const std::uint32_t high = nonfinite_bytes<E>(memory.payload[token][i % (D / 32) * 8 + w]);
        bits |= ((high >> 7 & 1) | (high >> 14 & 2) | (high >> 21 & 4) | (high >> 28 & 8)) << 4 * w;
      }
      to[i] = bits;
    }
  }

  /// The payload, row by row.
  OCTAVO_DEVICE void write_kept(const tile_place& here, const share_type& share, const shared& memory) const {
    const tile_rows rows(made.rowwise, 1, at, here, share);
    if (share.channel() >= at.d) return;
    for (int i = 0; i < share.tokens; ++i) {
      const int token = share.token(i);
      if (token >= here.tokens) continue;
      char* to = rows.writable(token);
      const std::uint32_t* from = &memory.payload[token][share.channel() / 4];
      if (rows.wide)
        __builtin_memcpy(__builtin_assume_aligned(to, 8), from, 8);
      else
        for (int c = 0; c < 8; ++c) to[c] = static_cast<char>(from[c / 4] >> c % 4 * 8);
    }
  }
  OCTAVO_DEVICE static void write_plain(std::uint8_t* to, const share_type& share, const shared& memory) {
    for (int i = 0; i < share.tokens; ++i)
      __builtin_memcpy(__builtin_assume_aligned(to + share.token(i) * D + share.channel(), 8),
                       &memory.payload[share.token(i)][share.channel() / 4], 8);
  }

  /// Every thread gathers pieces of 16 bytes, in the order of memory.
  OCTAVO_DEVICE static void write_rows(std::uint8_t* image, const shared& memory) {
    constexpr int pieces = tile_tokens * D / 16, block_pieces = at_lane::block_bytes / 16, depths = D / at_lane::depth;
    using A = typename M::template atom<e4m3, e4m3>;
    OCTAVO_UNROLL_TIMES(4)
    for (int p = M::thread_index(); p < pieces; p += threads) {
      const int block = p / block_pieces, lane = p % M::lanes, piece = p % block_pieces / M::lanes;
      std::uint32_t words[4];
      OCTAVO_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int token = block / depths * at_lane::size + A::operand_row(lane, 4 * piece + j);
        const int channel = block % depths * at_lane::depth + A::operand_depth(lane, 4 * piece + j);
        words[j] = M::template operand_bytes<E>(memory.payload[token][channel / 4]);
      }
      store_piece(image + 16 * p, words);
    }
  }
  /// Every thread gathers the pieces of four lanes, whose rows are neighbours: 4 x 4 bytes are transposed at a time.
  OCTAVO_DEVICE static void write_columns(std::uint8_t* image, const shared& memory) {
    constexpr int quads = tile_tokens * D / 64, block_quads = at_lane::block_bytes / 64, channels = D / at_lane::size;
    constexpr int stride = at_lane::lane_of_next_row, lane_quads = M::lanes / 4;
    using A = typename M::template atom<e4m3, e4m3>;
    static_assert(stride > 0 && at_lane::size % 4 == 0);
    const bool finite = any_bit(memory.nonfinite) == 0;
    for (int p = M::thread_index(); p < quads; p += threads) {
      const int block = p / block_quads, piece = p % block_quads / lane_quads, quad = p % lane_quads;
      const int lane = quad / stride * (4 * stride) + quad % stride;
      std::uint32_t of_lane[4][4];  // by lane, then word
      OCTAVO_UNROLL
      for (int j = 0; j < 4; ++j) {
        const int word = 4 * piece + j, channel = block % channels * at_lane::size + A::operand_row(lane, word);
        std::uint32_t of_token[4], of_channel[4];
        OCTAVO_UNROLL
        for (int byte = 0; byte < 4; ++byte) {
          const int token = block / channels * at_lane::depth + at_lane::token_of(lane, word, byte);
          of_token[byte] = memory.payload[token][channel / 4];
        }
        transpose_bytes<M>(of_token, of_channel);
        OCTAVO_UNROLL
        for (int i = 0; i < 4; ++i)
          of_lane[i][j] = M::template operand_bytes<E>(finite ? of_channel[i] : finite_bytes<E>(of_channel[i]));
      }
      OCTAVO_UNROLL
      for (int i = 0; i < 4; ++i)
        store_piece(image + block * at_lane::block_bytes + (piece * M::lanes + lane + i * stride) * 16, of_lane[i]);
    }
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
