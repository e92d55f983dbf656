// SPDX-License-Identifier: Apache-2.0
// Quantises a tensor for the Hopper schedules: from [b, s, heads, d] of T, or from a payload that the caller brings, to
// the images of its tiles, its scales as the loops want them, and what is not finite. Payloads and scales are to the
// last bit what `quantiser` (scaling/quantize.hpp) makes.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/cuda/common/quantise_input.hpp>
#include <octavo/backends/cuda/common/quantise_scale.hpp>
#include <octavo/backends/cuda/hopper/quantise_lanes.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// A block quantises one tile of one head: every warp 16 tokens, in registers from the first read to the last write.
/// Slots without a tile, and the tail of a packed tensor, are left alone.
template <class Recipe, class E, int D, token_order order>
struct quantise_kernel {
  static_assert(D == 64 || D == 128);
  static constexpr bool per_token = Recipe::scale_per == recipe::granularity::token;
  static_assert(per_token || Recipe::scale_per == recipe::granularity::tile128);
  using share_type = tile_share<D>;

  static constexpr int threads = ptx::warp_threads * share_type::warps;
  static constexpr int blocks_per_sm = D == 64 ? 5 : 4;  ///< for __launch_bounds__
  static constexpr int shared_bytes = per_token ? 0 : share_type::warps * sizeof(std::uint32_t);

  scale_layout<Recipe> at;
  const_tensor x;                ///< of bf16, f16 or f32
  const float* shift = nullptr;  ///< [documents, heads, d] subtracted from every token (key centring), or null
  const_quantized given;         ///< a payload of E with its scales, instead of x
  quantized made;                ///< where payload and scales are kept row by row; each pointer may be null
  tile_images images;            ///< each pointer may be null
  int extra = 0;                 ///< rows of ones below a column image's channels: 0 or ones_rows
  /// The scales as floats, [heads][slots][scales_per_tile]; 1 for absent tokens. May be null.
  float* scale = nullptr;
  /// token: fold_exponent of every token, fold_of_zero for absent ones, [heads][slots][128]. May be null.
  float* fold = nullptr;

  std::int64_t blocks() const { return at.docs.slots(tile_tokens) * at.heads; }

  OCTAVO_DEVICE void operator()() const {
    const tile_place here = place_of_block();
    if (here.tokens == 0) return;
    const share_type share;
    payload_share<D> payload;
    findings found = given ? take_given(here, share, payload) : quantise(here, share, payload);
    if (here.tokens < tile_tokens) clear_absent(here, share, payload);
    if (ptx::any_in_warp(found.scale.exponent() > largest_exponent)) found.nonfinite = 0xffff;
    write_factors(here, share, found);
    if (!given && made.rowwise) write_kept(here, share, payload);
    if (images.rows != nullptr)
      store_rows(share, payload, images.rows + tile_images::row_bytes(D) * std::int64_t{here.index});
    if (images.columns != nullptr) write_columns(here, share, payload, found);
  }

 private:
  /// Above it, dP may overflow: such tokens are marked like those that are not finite, so that the loops look closely.
  static constexpr int largest_exponent = 50;
  static constexpr std::uint32_t nan_bytes = 0x7f7f7f7fu;

  /// What a thread learns of its warp's tokens.
  struct findings {
    e8m0 scale;               ///< of token_of_thread
    bool zero;                ///< whether all of that token's payload is
    std::uint32_t nonfinite;  ///< bit t: token t of the warp has an infinity or a NaN
  };

  /// Heads of the same tokens lie side by side in memory: they come one after another.
  OCTAVO_DEVICE tile_place place_of_block() const {
    const auto block = static_cast<std::uint32_t>(ptx::block_index()), heads = static_cast<std::uint32_t>(at.heads);
    const std::uint32_t slot = block / heads, h = block % heads;
    tile_place here{0, static_cast<int>(h), 0, 0, static_cast<int>(h * at.docs.slots(tile_tokens) + slot)};
    if (at.docs.packed) {
      const token_tile tile = at.docs.tile_at(slot, tile_tokens);
      here.document = static_cast<int>(tile.document);
      here.number = static_cast<int>(tile.first / tile_tokens);
      here.tokens = at.docs.is_tail(tile.document) ? 0 : tile.tokens;
    } else {  // the same with narrow numbers, which divide several times faster
      const auto tiles = static_cast<std::uint32_t>(ceil_div(at.docs.length, tile_tokens));
      here.document = static_cast<int>(slot / tiles);
      here.number = static_cast<int>(slot % tiles);
      const std::int64_t left = at.docs.length - here.first();
      here.tokens = left < tile_tokens ? static_cast<int>(left) : tile_tokens;
    }
    return here;
  }

  template <bool wide>
  OCTAVO_DEVICE static void load_payload(const tile_place& here, const share_type& share,
                                         const tile_rows<const char>& rows, payload_share<D>& payload) {
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const int token = share.token(i);
      load_words<wide, std::uint8_t>(rows[token < here.tokens ? token : here.tokens - 1], payload[i]);
    }
  }
  /// The payload that the caller brings. In the place of tokens that the tile lacks, its last one is taken.
  OCTAVO_DEVICE findings take_given(const tile_place& here, const share_type& share, payload_share<D>& payload) const {
    const tile_rows<const char> rows(given.rowwise, 1, at.docs, here, share);
    if (rows.wide)
      load_payload<true>(here, share, rows, payload);
    else
      load_payload<false>(here, share, rows, payload);
    // A scale that is NaN makes its tokens NaN; the loops multiply by numbers only.
    const auto* const scales = static_cast<const std::uint8_t*>(given.rowwise_scale);
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const int present = share.token(i) < here.tokens ? share.token(i) : here.tokens - 1;
      if (e8m0{scales[scale_index(here, present)]}.is_nan()) payload[i][0] = payload[i][1] = nan_bytes;
    }
    std::uint32_t nonfinite = 0, nonzero = 0;
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      const std::uint32_t low = payload[i][0], high = payload[i][1], bit = 1u << share.token_of_warp(i);
      nonfinite |= (nonfinite_bytes<E>(low) | nonfinite_bytes<E>(high)) != 0 ? bit : 0;
      nonzero |= ((low | high) & 0x7f7f7f7fu) != 0 ? bit : 0;
    }
    const std::uint32_t bits = or_over_warp(nonzero << 16 | nonfinite);
    const int token = token_of_thread(share);
    findings found{e8m0::from_exponent(0), (bits >> 16 >> token % share.warp_tokens & 1) == 0, bits & 0xffff};
    if (token < here.tokens && !e8m0{scales[scale_index(here, token)]}.is_nan())
      found.scale.bits = scales[scale_index(here, token)];
    return found;
  }

  OCTAVO_DEVICE findings quantise(const tile_place& here, const share_type& share, payload_share<D>& payload) const {
    switch (x.type) {
      case dtype::bf16:
        return quantise_as<bf16>(here, share, payload);
      case dtype::f16:
        return quantise_as<fp16>(here, share, payload);
      default:
        return quantise_as<float>(here, share, payload);
    }
  }
  template <class T>
  OCTAVO_DEVICE findings quantise_as(const tile_place& here, const share_type& share, payload_share<D>& payload) const {
    return shift == nullptr ? encode<T, false>(here, share, payload) : encode<T, true>(here, share, payload);
  }

  template <class T, bool shifted>
  OCTAVO_DEVICE findings encode(const tile_place& here, const share_type& share, payload_share<D>& payload) const {
    constexpr bool kept = sizeof(T) == 2;  // floats are too many
    const tile_rows<const char> rows(x, sizeof(T), at.docs, here, share);
    const float* shift_here = shifted ? shift + (at.heads * here.document + here.h) * D : nullptr;
    tile_numbers<T, shifted, kept, share_type> numbers(share, rows, here.tokens, shift_here);
    std::uint32_t amax[share_type::tokens] = {}, low[share_type::tokens] = {}, high[share_type::tokens] = {};
    find_amax<false>(numbers, amax);
    const std::uint32_t nonfinite = nonfinite_tokens(share, amax);
    if (nonfinite != 0) {  // rare, and so with few registers
      tile_numbers<T, shifted, false, share_type> again(share, rows, here.tokens, shift_here);
      find_amax<true>(again, amax);
    }
    numbers.look_again();
    share_amax(share, amax);
    OCTAVO_UNROLL_TIMES(kept ? share_type::tokens : 1)
    for (int i = 0; i < share.tokens; ++i) {
      float row[share_type::channels];
      numbers.get(i, row);
      const float reciprocal = reciprocal_of(scale_for<E>(pick(amax, i)));
      OCTAVO_UNROLL
      for (float& y : row) y = y * reciprocal + (y - y);  // NaN for an infinity
      put(low, i, ptx::pack<E>(row[0], row[1], row[2], row[3]));
      put(high, i, ptx::pack<E>(row[4], row[5], row[6], row[7]));
    }
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) payload[i][0] = low[i], payload[i][1] = high[i];
    const std::uint32_t amax_of_thread = per_token ? pick(amax, share.lane_of_row) : amax[0];
    const bool has_nonfinite = (nonfinite >> token_of_thread(share) % share.warp_tokens & 1) != 0;
    return {scale_for<E>(amax_of_thread), amax_of_thread == 0 && !has_nonfinite, nonfinite};
  }

  /// The largest magnitudes of a thread's rows, as bits. Without only_finite, those of rows with an infinity or a NaN
  /// are not below an infinity's.
  template <bool only_finite, class Numbers>
  OCTAVO_DEVICE static void find_amax(Numbers& numbers, std::uint32_t (&amax)[share_type::tokens]) {
    OCTAVO_UNROLL_TIMES(Numbers::unrolled)
    for (int i = 0; i < share_type::tokens; ++i) {
      float row[share_type::channels], largest = 0;
      numbers.get(i, row);
      OCTAVO_UNROLL
      for (const float y : row) {
        if constexpr (only_finite)
          largest = finite_amax(largest, y);
        else
          largest = ptx::larger_or_nan(largest, std::fabs(y));
      }
      put(amax, i, detail::bit_cast<std::uint32_t>(largest));
    }
  }
  OCTAVO_DEVICE static std::uint32_t nonfinite_tokens(const share_type& share,
                                                      const std::uint32_t (&amax)[share_type::tokens]) {
    std::uint32_t bits = 0;
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i)
      bits |= amax[i] >= detail::float_exponent_mask ? 1u << share.token_in_group_0(i) : 0;
    if (!ptx::any_in_warp(bits != 0)) return 0;
    return or_over_warp(bits << 2 * share.group);
  }
  /// From the maxima of a thread's rows to those of whatever shares a scale with each.
  OCTAVO_DEVICE static void share_amax(const share_type& share, std::uint32_t (&amax)[share_type::tokens]) {
    if constexpr (per_token) {
      OCTAVO_UNROLL
      for (int lanes = 1; lanes < share_type::row_lanes; lanes *= 2)
        for (std::uint32_t& of_row : amax) of_row = detail::larger(of_row, ptx::shuffle_xor(of_row, lanes));
    } else {
      std::uint32_t all = 0;
      OCTAVO_UNROLL
      for (const std::uint32_t of_row : amax) all = detail::larger(all, of_row);
      auto* of_warps = reinterpret_cast<std::uint32_t*>(ptx::shared_memory());
      all = ptx::max_over_warp(all);
      if (share.lane == 0) of_warps[share.warp] = all;
      ptx::sync_block();
      OCTAVO_UNROLL
      for (int w = 0; w < share_type::warps; ++w) all = detail::larger(all, of_warps[w]);
      OCTAVO_UNROLL
      for (std::uint32_t& of_row : amax) of_row = all;
    }
  }

  OCTAVO_DEVICE static void clear_absent(const tile_place& here, const share_type& share, payload_share<D>& payload) {
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i)
      if (share.token(i) >= here.tokens) payload[i][0] = payload[i][1] = 0;
  }

  /// The token whose scale a thread reads or writes: a row's lanes have one each, as far as they have tokens; of a tile
  /// the first thread has it. tile_tokens: none.
  OCTAVO_DEVICE static int token_of_thread(const share_type& share) {
    if constexpr (per_token)
      return share.lane_of_row < share.tokens ? share.token(share.lane_of_row) : tile_tokens;
    else
      return ptx::thread_index() == 0 ? 0 : tile_tokens;
  }
  OCTAVO_DEVICE std::int64_t scale_index(const tile_place& here, int token) const {
    const std::int64_t first = at.rowwise_first(here.document, here.h);
    return first + (per_token ? here.first() + token : here.number);
  }

  OCTAVO_DEVICE void write_factors(const tile_place& here, const share_type& share, const findings& found) const {
    if (images.nonfinite != nullptr && share.lane == 0) {  // a warp's tokens are half of a word
      const int present = here.tokens - share.warp_tokens * share.warp;
      const std::uint32_t mask = present >= share.warp_tokens ? 0xffff : present > 0 ? (1u << present) - 1 : 0;
      const auto half = static_cast<std::uint16_t>(found.nonfinite & mask);
      std::memcpy(reinterpret_cast<char*>(images.nonfinite + std::int64_t{here.index} * 4) + share.warp * 2, &half, 2);
    }
    const int token = token_of_thread(share);
    if (token == tile_tokens) return;
    const bool absent = token >= here.tokens;
    if (!given && made.rowwise_scale != nullptr && !absent)
      static_cast<std::uint8_t*>(made.rowwise_scale)[scale_index(here, token)] = found.scale.bits;
    const std::int64_t index = std::int64_t{here.index} * scales_per_tile<Recipe> + token;
    if (scale != nullptr) {
      const float value = absent ? 1.0f : static_cast<float>(found.scale);
      for (int copy = 0; copy < (per_token ? 1 : scales_per_tile<Recipe>); ++copy) scale[index + copy] = value;
    }
    if constexpr (per_token) {
      const int exponent = found.scale.exponent();
      const bool of_zero = absent || (exponent == 0 && found.zero);
      if (fold != nullptr) fold[index] = static_cast<float>(of_zero ? fold_of_zero : exponent);
    }
  }

  /// The payload, row by row.
  OCTAVO_DEVICE void write_kept(const tile_place& here, const share_type& share,
                                const payload_share<D>& payload) const {
    const tile_rows<char> rows(made.rowwise, 1, at.docs, here, share);
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      if (share.token(i) >= here.tokens) continue;
      char* to = rows[share.token(i)];
      if (rows.wide)
        std::memcpy(__builtin_assume_aligned(to, 8), payload[i], 8);
      else
        for (int c = 0; c < 8; ++c) to[c] = static_cast<char>(payload[i][c / 4] >> c % 4 * 8);
    }
  }

  /// Products over tokens take what is not finite as a zero, marked by its sign.
  OCTAVO_DEVICE void write_columns(const tile_place& here, const share_type& share, payload_share<D>& payload,
                                   const findings& found) const {
    if (found.nonfinite != 0) {
      OCTAVO_UNROLL
      for (auto& row : payload)
        for (std::uint32_t& bytes : row) bytes = marked_bytes<E>(bytes);
    }
    std::uint8_t* image = images.columns + tile_images::column_bytes(D, extra) * std::int64_t{here.index};
    if (share.lane < extra) {
      const std::uint32_t ones = ptx::pack<E>(1, 1, 1, 1);
      const int at_one = column_image_at(chunk_bytes * share.warp, D + share.lane, D + extra);
      store_words(image + at_one, ones, ones, ones, ones);
    }
    store_columns<order>(share, payload, image, D + extra);
  }
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
