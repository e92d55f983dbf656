// SPDX-License-Identifier: Apache-2.0
// Quantises a tensor to mx32 for the Blackwell schedules: from [b, s, heads, d] of T, or from a payload that the caller
// brings, to the images of its tiles and what is not finite, in one pass over the input. Payloads and scales are to the
// last bit what `quantiser` (scaling/quantize.hpp) makes.
#pragma once

#include <octavo/backends/cuda/blackwell/images.hpp>
#include <octavo/backends/cuda/common/quantise_input.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// A thread's share of a tile of d = D channels: warp w has tokens 32 w to 32 w + 31, which share scales of columns; a
/// thread has eight channels of every second (D = 128) or fourth pair of tokens.
template <int D>
struct block_share {
  static constexpr int channels = 8;                            ///< per thread
  static constexpr int row_lanes = D / channels;                ///< lanes that have a token together
  static constexpr int groups = ptx::warp_threads / row_lanes;  ///< pairs of tokens that a warp has side by side
  static constexpr int tokens = mx_block / groups;              ///< per thread
  static constexpr int block_lanes = mx_block / channels;       ///< lanes that share a scale of a row

  int warp = ptx::thread_index() / ptx::warp_threads;
  int lane = ptx::thread_index() % ptx::warp_threads;
  int group = lane / row_lanes;
  int lane_of_row = lane % row_lanes;

  OCTAVO_DEVICE int channel() const { return channels * lane_of_row; }
  OCTAVO_DEVICE int token_of_warp(int i) const { return 2 * groups * (i / 2) + 2 * group + i % 2; }
  OCTAVO_DEVICE int token(int i) const { return mx_block * warp + token_of_warp(i); }
};

/// A block quantises one tile of one head. Slots without a tile, and the tail of a packed tensor, are left alone.
template <class Recipe, class E, int D>
struct quantise_kernel {
  static_assert(D == 64 || D == 128);
  static_assert(Recipe::scale_per == recipe::granularity::block32);
  using share_type = block_share<D>;

  static constexpr int threads = tile_blocks * ptx::warp_threads;
  static constexpr int blocks_per_sm = 4;  ///< for __launch_bounds__
  /// A tile's scales, gathered so that they are written in whole lines.
  struct shared {
    std::uint8_t row_scales[scale_bytes], column_scales[scale_bytes];
  };
  static constexpr int shared_bytes = sizeof(shared);

  scale_layout<Recipe> at;
  const_tensor x;                ///< of bf16, f16 or f32
  const float* shift = nullptr;  ///< [documents, heads, d] subtracted from every token (key centring), or null
  const_quantized given;         ///< payloads of E with their scales, instead of x
  quantized made;                ///< where payloads and scales are kept as arguments.hpp has them, or null
  tile_images images;            ///< payloads may be null

  std::int64_t blocks() const { return at.docs.slots(tile_tokens) * at.heads; }

  OCTAVO_DEVICE void operator()() const {
    const tile_place here = place_of_block();
    if (here.tokens == 0) return;
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    clear_scales(memory);
    const share_type share;
    const findings found = given ? take_given(here, share, memory) : quantise(here, share, memory);
    ptx::sync_block();
    write_scales(here, share, memory, found);
  }

 private:
  /// Above it, dP may overflow: such tokens are marked like those that are not finite, so that the loops look closely.
  static constexpr int largest_exponent = 50;
  static constexpr std::uint32_t nan_bytes = 0x7f7f7f7fu;

  /// What a warp learns of its tokens.
  struct findings {
    std::uint32_t nonfinite = 0;  ///< bit t: token t of the warp has an infinity or a NaN
    bool large = false;           ///< any scale of rows is
  };

  /// Heads of the same tokens lie side by side in memory: they come one after another.
  OCTAVO_DEVICE tile_place place_of_block() const {
    const std::uint32_t block = narrow(ptx::block_index()), heads = narrow(at.heads);
    const std::uint32_t slot = block / heads, h = block % heads;
    const token_tile tile = tile_of_slot<tile_tokens>(at.docs, slot);
    return {static_cast<int>(tile.document), static_cast<int>(h), static_cast<int>(tile.first / tile_tokens),
            at.docs.is_tail(tile.document) ? 0 : tile.tokens, static_cast<int>(h * at.docs.slots(tile_tokens) + slot)};
  }
  OCTAVO_DEVICE static void clear_scales(shared& memory) {
    std::uint32_t* word = reinterpret_cast<std::uint32_t*>(&memory);
    for (int i = ptx::thread_index(); i < shared_bytes / 4; i += threads) word[i] = 0;
    ptx::sync_block();
  }

  OCTAVO_DEVICE findings quantise(const tile_place& here, const share_type& share, shared& memory) const {
    switch (x.type) {
      case dtype::bf16:
        return encode<bf16>(here, share, memory);
      case dtype::f16:
        return encode<fp16>(here, share, memory);
      default:
        return encode<float>(here, share, memory);
    }
  }

  /// The largest magnitudes, as bits, of what shares a scale with a thread's numbers.
  struct maxima {
    std::uint32_t row[share_type::tokens] = {}, column[share_type::channels] = {};
  };

  template <class T>
  OCTAVO_DEVICE findings encode(const tile_place& here, const share_type& share, shared& memory) const {
    constexpr bool kept = sizeof(T) == 2;  // floats are too many
    const tile_rows<const char> rows(x, sizeof(T), at.docs, here, share);
    const float* shift_here = shift == nullptr ? nullptr : shift + (at.heads * here.document + here.h) * D;
    tile_numbers<T, true, kept, share_type> numbers(share, rows, here.tokens, shift_here);
    maxima amax;
    find_amax<false>(numbers, amax);
    findings found;
    found.nonfinite = nonfinite_tokens(share, amax);
    if (found.nonfinite != 0) {  // rare, and so with few registers
      tile_numbers<T, true, false, share_type> again(share, rows, here.tokens, shift_here);
      amax = {};
      find_amax<true>(again, amax);
    }
    share_amax(amax);

    e8m0 scale_of_column[share_type::channels];
    float of_column[share_type::channels];  // reciprocals
    OCTAVO_UNROLL
    for (int c = 0; c < share.channels; ++c) {
      scale_of_column[c] = scale_for<E>(amax.column[c]);
      of_column[c] = reciprocal_of(scale_of_column[c]);
      if (share.group == 0) memory.column_scales[scale_at(share.channel() + c, share.warp)] = scale_of_column[c].bits;
    }
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const e8m0 scale = scale_for<E>(amax.row[i]);
      found.large |= scale.exponent() > largest_exponent;
      if (share.lane_of_row % share.block_lanes == 0)
        memory.row_scales[scale_at(share.token(i), share.channel() / mx_block)] = scale.bits;
    }
    mark_large(found);
    numbers.look_again();
    OCTAVO_UNROLL_TIMES(kept ? share_type::tokens / 2 : 1)
    for (int i = 0; i < share.tokens; i += 2) {
      token_pair by_row, by_column;
      OCTAVO_UNROLL
      for (int e = 0; e < 2; ++e) {
        float number[share_type::channels];
        numbers.get(i + e, number);
        const float of_row = reciprocal_of(scale_for<E>(pick(amax.row, i + e)));
        const bool exists = share.token(i + e) < here.tokens;
        encode_channels(number, [&](int) { return of_row; }, exists, by_row.bytes[e]);
        encode_channels(number, [&](int c) { return of_column[c]; }, exists, by_column.bytes[e]);
      }
      store(here, share, i, by_row, by_column, found);
    }
    return found;
  }

  /// Two neighbouring tokens of a thread, eight channels of each.
  struct token_pair {
    std::uint32_t bytes[2][2];
  };
  /// Numbers times factor(c), as bytes; zero where the token is absent.
  template <class Factor>
  OCTAVO_DEVICE static void encode_channels(const float (&number)[share_type::channels], Factor factor, bool exists,
                                            std::uint32_t (&bytes)[2]) {
    float y[share_type::channels];
    OCTAVO_UNROLL
    for (int c = 0; c < share_type::channels; ++c)
      y[c] = number[c] * factor(c) + (number[c] - number[c]);  // NaN for an infinity
    bytes[0] = exists ? ptx::pack<E>(y[0], y[1], y[2], y[3]) : 0;
    bytes[1] = exists ? ptx::pack<E>(y[4], y[5], y[6], y[7]) : 0;
  }

  /// Without only_finite, the maxima of what holds an infinity or a NaN are not below an infinity's.
  template <bool only_finite, class Numbers>
  OCTAVO_DEVICE static void find_amax(Numbers& numbers, maxima& amax) {
    const auto larger = [](std::uint32_t a, float y) {
      const float of = detail::bit_cast<float>(a);
      return detail::bit_cast<std::uint32_t>(only_finite ? finite_amax(of, y) : ptx::larger_or_nan(of, std::fabs(y)));
    };
    OCTAVO_UNROLL_TIMES(Numbers::unrolled)
    for (int i = 0; i < share_type::tokens; ++i) {
      float number[share_type::channels];
      std::uint32_t largest = 0;
      numbers.get(i, number);
      OCTAVO_UNROLL
      for (int c = 0; c < share_type::channels; ++c) {
        largest = larger(largest, number[c]);
        amax.column[c] = larger(amax.column[c], number[c]);
      }
      put(amax.row, i, largest);
    }
  }
  OCTAVO_DEVICE static std::uint32_t nonfinite_tokens(const share_type& share, const maxima& amax) {
    std::uint32_t bits = 0;
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i)
      bits |= amax.row[i] >= detail::float_exponent_mask ? 1u << share.token_of_warp(i) : 0;
    return ptx::any_in_warp(bits != 0) ? or_over_warp(bits) : 0;
  }
  /// From the maxima of a thread's numbers to those of whatever shares a scale with each.
  OCTAVO_DEVICE static void share_amax(maxima& amax) {
    OCTAVO_UNROLL
    for (int lanes = 1; lanes < share_type::block_lanes; lanes *= 2)
      for (std::uint32_t& a : amax.row) a = detail::larger(a, ptx::shuffle_xor(a, lanes));
    OCTAVO_UNROLL
    for (int lanes = share_type::row_lanes; lanes < ptx::warp_threads; lanes *= 2)
      for (std::uint32_t& a : amax.column) a = detail::larger(a, ptx::shuffle_xor(a, lanes));
  }

  /// The payloads that the caller brings. In the place of tokens that the tile lacks, its last one is taken.
  OCTAVO_DEVICE findings take_given(const tile_place& here, const share_type& share, shared& memory) const {
    const auto* const row_scales =
        static_cast<const std::uint8_t*>(given.rowwise_scale) + at.rowwise_first(here.document, here.h);
    const auto* const column_scales =
        static_cast<const std::uint8_t*>(given.columnwise_scale) + at.columnwise_first(here.document, here.h);
    // A scale that is NaN makes its elements NaN; the tensor cores multiply by numbers only.
    findings found;
    std::uint32_t nan_of_column[2] = {0, 0};
    const bool block_exists = mx_block * share.warp < here.tokens;
    OCTAVO_UNROLL
    for (int c = 0; c < share.channels; ++c) {
      e8m0 scale = e8m0::from_exponent(0);
      if (block_exists)
        scale.bits = column_scales[(std::int64_t{here.number} * tile_blocks + share.warp) * D + share.channel() + c];
      if (scale.is_nan()) {
        nan_of_column[c / 4] |= 0xffu << c % 4 * 8;
        scale = e8m0::from_exponent(0);
      }
      if (share.group == 0) memory.column_scales[scale_at(share.channel() + c, share.warp)] = scale.bits;
    }
    const tile_rows<const char> rows(given.rowwise, 1, at.docs, here, share);
    const tile_rows<const char> columns(given.columnwise, 1, at.docs, here, share);
    token_pair by_row[share_type::tokens / 2], by_column[share_type::tokens / 2];
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const int token = share.token(i), present = token < here.tokens ? token : here.tokens - 1;
      std::uint32_t(&row)[2] = by_row[i / 2].bytes[i % 2], (&column)[2] = by_column[i / 2].bytes[i % 2];
      load_payload(rows, present, row);
      load_payload(columns, present, column);
      e8m0 scale{row_scales[(here.first() + present) * (D / mx_block) + share.channel() / mx_block]};
      if (scale.is_nan()) {
        row[0] = row[1] = nan_bytes;
        scale = e8m0::from_exponent(0);
      }
      if (share.lane_of_row % share.block_lanes == 0)
        memory.row_scales[scale_at(token, share.channel() / mx_block)] = scale.bits;
      found.large |= scale.exponent() > largest_exponent;
      OCTAVO_UNROLL
      for (int w = 0; w < 2; ++w) {
        column[w] = (column[w] & ~nan_of_column[w]) | (nan_bytes & nan_of_column[w]);
        if ((nonfinite_bytes<E>(row[w]) | nonfinite_bytes<E>(column[w])) != 0)
          found.nonfinite |= 1u << share.token_of_warp(i);
        if (token >= here.tokens) row[w] = column[w] = 0;
      }
    }
    found.nonfinite = or_over_warp(found.nonfinite);
    mark_large(found);
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; i += 2) store(here, share, i, by_row[i / 2], by_column[i / 2], found);
    return found;
  }
  OCTAVO_DEVICE static void load_payload(const tile_rows<const char>& rows, int token, std::uint32_t (&to)[2]) {
    if (rows.wide)
      load_words<true, std::uint8_t>(rows[token], to);
    else
      load_words<false, std::uint8_t>(rows[token], to);
  }
  OCTAVO_DEVICE static void mark_large(findings& found) {
    if (ptx::any_in_warp(found.large)) found.nonfinite = 0xffffffffu;
  }

  /// Tokens i and i + 1 of a thread, wherever they are kept.
  OCTAVO_DEVICE void store(const tile_place& here, const share_type& share, int i, token_pair& by_row,
                           token_pair& by_column, const findings& found) const {
    if (!given && made.rowwise) {
      OCTAVO_UNROLL
      for (int e = 0; e < 2; ++e) {
        if (share.token(i + e) >= here.tokens) continue;
        write_kept(made.rowwise, here, share, share.token(i + e), by_row.bytes[e]);
        write_kept(made.columnwise, here, share, share.token(i + e), by_column.bytes[e]);
      }
    }
    const std::int64_t first = std::int64_t{here.index} * tile_images::payload_bytes(D);
    if (images.rows != nullptr)
      store_pair(by_row.bytes[0], by_row.bytes[1], share.token(i), share.channel(), share.lane, images.rows + first);
    if (images.columns == nullptr) return;
    if (found.nonfinite != 0) {
      OCTAVO_UNROLL
      for (auto& token : by_column.bytes)
        for (std::uint32_t& bytes : token) bytes = marked_bytes<E>(bytes);
    }
    store_pair(by_column.bytes[0], by_column.bytes[1], share.token(i), share.channel(), share.lane,
               images.columns + first);
  }
  OCTAVO_DEVICE void write_kept(const tensor& to, const tile_place& here, const share_type& share, int token,
                                const std::uint32_t (&bytes)[2]) const {
    const tile_rows<char> rows(to, 1, at.docs, here, share);
    char* const row = rows[token];
    if (rows.wide)
      std::memcpy(__builtin_assume_aligned(row, 8), bytes, 8);
    else
      for (int c = 0; c < 8; ++c) row[c] = static_cast<char>(bytes[c / 4] >> c % 4 * 8);
  }

  /// Behind a barrier of the block: the scales of the tile, also where they are kept, and its marks.
  OCTAVO_DEVICE void write_scales(const tile_place& here, const share_type& share, const shared& memory,
                                  const findings& found) const {
    const std::int64_t first = std::int64_t{here.index} * scale_bytes;
    const auto write = [&](std::uint8_t* to, const std::uint8_t(&scales)[scale_bytes], int thread) {
      if (to != nullptr && thread >= 0 && thread < scale_bytes / 16)
        std::memcpy(__builtin_assume_aligned(to + first + 16 * thread, 16), scales + 16 * thread, 16);
    };
    write(images.row_scales, memory.row_scales, ptx::thread_index());
    write(images.column_scales, memory.column_scales, ptx::thread_index() - scale_bytes / 16);
    if (images.nonfinite != nullptr && share.lane == 0) {
      const int present = here.tokens - mx_block * share.warp;
      const std::uint32_t mask = present >= mx_block ? 0xffffffffu : present > 0 ? (1u << present) - 1 : 0;
      images.nonfinite[std::int64_t{here.index} * tile_blocks + share.warp] = found.nonfinite & mask;
    }
    if (given || made.rowwise_scale == nullptr) return;
    auto* const row_scales = static_cast<std::uint8_t*>(made.rowwise_scale) + at.rowwise_first(here.document, here.h);
    auto* const column_scales =
        static_cast<std::uint8_t*>(made.columnwise_scale) + at.columnwise_first(here.document, here.h);
    for (int i = ptx::thread_index(); i < here.tokens * (D / mx_block); i += threads) {
      const int token = i / (D / mx_block), block = i % (D / mx_block);
      row_scales[here.first() * (D / mx_block) + i] = memory.row_scales[scale_at(token, block)];
    }
    for (int i = ptx::thread_index(); i < (here.tokens + mx_block - 1) / mx_block * D; i += threads)
      column_scales[std::int64_t{here.number} * tile_blocks * D + i] = memory.column_scales[scale_at(i % D, i / D)];
  }
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
