// SPDX-License-Identifier: Apache-2.0
// Quantises a tensor for the lane-level schedules: from [b, s, heads, d] of T, or from a payload that the caller brings, to
// the images of its tiles, its scales as the loops want them, and what is not finite. Payloads and scales are to the last
// bit what `quantiser` (scaling/quantize.hpp) makes.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/simt/image_writer.hpp>

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
  using writer = image_writer<M, E, D, false>;

  static constexpr int threads = share_type::threads, blocks_per_sm = D <= 64 ? 4 : D <= 128 ? 2 : 1;
  struct shared {
    tile_payload<M, D> payload;
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
    const tile_place here = tile_place::of_block<M>(at);
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
    if (!given && made.rowwise) writer::write_kept(made.rowwise, at, here, share, memory.payload);
    const std::int64_t first = here.index * image_bytes<M, false>(tile_tokens, D);
    if (images.rows != nullptr) writer::write_rows(images.rows + first, memory.payload);
    if (images.columns != nullptr)
      writer::write_columns(images.columns + first, memory.payload, any_bit(memory.nonfinite) == 0);
    if (images.plain != nullptr)
      writer::write_plain(images.plain + here.index * plain_bytes<false>(D), share, memory.payload);
  }

 private:
  /// Above it, dP may overflow: such tokens are marked like those that are not finite, so that the loops look closely.
  static constexpr int largest_exponent = 50;
  static constexpr std::uint32_t nan_bytes = 0x7f7f7f7fu;

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
    const tile_numbers<M, T, D> numbers(x, shift, at, here, share);
    const bool in_d = share.channel() < at.d;
    OCTAVO_UNROLL
    for (int i = 0; i < share.tokens; ++i) {
      float row[share_type::channels], amax = 0;
      numbers.get(i, row);
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c) amax = finite_amax(amax, row[c]);
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
      numbers.get(i, row);
      std::uint32_t bytes[2] = {0, 0};
      if (token < here.tokens && in_d) encode_channels<M, E>(row, [&](int) { return reciprocal; }, bytes);
      put(share, token, bytes, memory);
      if (scale.exponent() > largest_exponent && share.leads_row())
        M::atomic_or(&memory.nonfinite[token / 32], 1u << token % 32);
    }
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
    if (images.nonfinite_channels != nullptr && any_bit(memory.nonfinite) != 0)
      writer::write_channels(images.nonfinite_channels + here.index * tile_tokens * (D / 32), memory.nonfinite,
                             memory.payload);
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
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
