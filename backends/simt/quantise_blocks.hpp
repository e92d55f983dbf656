// SPDX-License-Identifier: Apache-2.0
// quantise.hpp for mx32: two payloads of a tensor, one with a scale per token and 32 channels (rows), one with a scale per
// channel and 32 tokens (columns). Scales go into the images, beside the operands that they belong to.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/simt/image_writer.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// A block quantises one tile of one head. All scales first; then the two payloads, one after the other through the same
/// shared memory, of which only what is wanted is made. Slots without a tile, and the tail of a packed tensor, are left
/// alone.
template <class M, class Recipe, class E, int D>
struct quantise_blocks_kernel {
  using machine = M;
  static_assert(scales_in_atom<Recipe>);
  using share_type = tile_share<M, D>;
  using writer = image_writer<M, E, D, true>;

  static constexpr int threads = share_type::threads, blocks_per_sm = D <= 64 ? 4 : D <= 128 ? 2 : 1;
  static constexpr int warps = threads / M::lanes, row_blocks = D / mx_block, token_blocks = tile_tokens / mx_block;
  struct shared {
    union {
      tile_payload<M, D> payload;
      std::uint32_t amax[warps][token_blocks][D];  ///< bits of the largest finite magnitude that a warp has of a column
    };
    std::uint8_t row_scale[tile_tokens][row_blocks], column_scale[token_blocks][D];
    std::uint32_t nonfinite[4];  ///< as in tile_images
  };
  static constexpr int shared_bytes = sizeof(shared);

  scale_layout<Recipe> at;
  const_tensor x;                ///< of bf16, f16 or f32
  const float* shift = nullptr;  ///< [documents, heads, d] subtracted from every token (key centring), or null
  const_quantized given;         ///< payloads of E with their scales, instead of x
  quantized made;                ///< where payloads and scales are kept as arguments.hpp has them, or null
  tile_images images;            ///< each pointer may be null

  std::int64_t blocks() const { return at.docs.slots(tile_tokens) * at.heads; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(M::shared());
    const tile_place here = tile_place::of_block<M>(at);
    if (here.tokens == 0) return;
    if (M::thread_index() < 4) memory.nonfinite[M::thread_index()] = 0;
    M::sync_block();
    const share_type share;
    if (given)
      make(here, share, memory, given_payloads{*this, here, share});
    else if (x.type == dtype::bf16)
      make(here, share, memory, numbers<bf16>{{x, shift, at, here, share}});
    else if (x.type == dtype::f16)
      make(here, share, memory, numbers<fp16>{{x, shift, at, here, share}});
    else
      make(here, share, memory, numbers<float>{{x, shift, at, here, share}});
  }

 private:
  /// Above it, dP may overflow: such tokens are marked like those that are not finite, so that the loops look closely.
  static constexpr int largest_exponent = 50;
  static constexpr std::uint32_t nan_bytes = 0x7f7f7f7fu;

  OCTAVO_DEVICE static int block_of(int token) { return token / mx_block; }

  /// Source: find_scales(share, memory) and, a barrier later, by_rows and by_columns(share, memory, i, bytes): the codes of
  /// a thread's i-th token.
  template <class Source>
  OCTAVO_DEVICE void make(const tile_place& here, const share_type& share, shared& memory, const Source& from) const {
    const bool keep = !given && made.rowwise;
    from.find_scales(share, memory);
    M::sync_block();
    if (keep) write_kept_scales(here, memory);
    const std::int64_t image = here.index * image_bytes<M, true>(tile_tokens, D);
    if (images.rows != nullptr || images.plain != nullptr || keep) {
      OCTAVO_UNROLL
      for (int i = 0; i < share.tokens; ++i) {
        std::uint32_t bytes[2];
        from.by_rows(share, memory, i, bytes);
        put(share, share.token(i), bytes, memory);
        const e8m0 scale{memory.row_scale[share.token(i)][share.channel() / mx_block]};
        if (scale.exponent() > largest_exponent)
          M::atomic_or(&memory.nonfinite[share.token(i) / 32], 1u << share.token(i) % 32);
      }
      M::sync_block();
      if (images.rows != nullptr) {
        writer::write_rows(images.rows + image, memory.payload);
        writer::write_row_scales(images.rows + image,
                                 [&](int token, int block) { return memory.row_scale[token][block]; });
      }
      if (images.plain != nullptr) write_plain(images.plain + here.index * plain_bytes<true>(D), share, memory);
      if (keep) writer::write_kept(made.rowwise, at, here, share, memory.payload);
      M::sync_block();
    }
    if (images.columns != nullptr || keep) {
      OCTAVO_UNROLL
      for (int i = 0; i < share.tokens; ++i) {
        std::uint32_t bytes[2];
        from.by_columns(share, memory, i, bytes);
        put(share, share.token(i), bytes, memory);
      }
      M::sync_block();
      if (images.columns != nullptr) {
        writer::write_columns(images.columns + image, memory.payload, any_bit(memory.nonfinite) == 0);
        writer::write_column_scales(images.columns + image,
                                    [&](int channel, int block) { return memory.column_scale[block][channel]; });
      }
      if (keep) writer::write_kept(made.columnwise, at, here, share, memory.payload);
      if (images.nonfinite_channels != nullptr && any_bit(memory.nonfinite) != 0)
        writer::write_channels(images.nonfinite_channels + here.index * tile_tokens * (D / 32), memory.nonfinite,
                               memory.payload);
    }
    const int thread = M::thread_index();
    if (images.nonfinite != nullptr && thread < 4) images.nonfinite[here.index * 4 + thread] = memory.nonfinite[thread];
  }

  /// Numbers of T, to be quantised.
  template <class T>
  struct numbers {
    tile_numbers<M, T, D> of;

    OCTAVO_DEVICE void find_scales(const share_type& share, shared& memory) const {
      constexpr int channels = share_type::channels, block_threads = mx_block / channels;
      // Of a run of 32 tokens a thread has one or several, one after another.
      constexpr int run = share_type::rows_at_once < mx_block ? mx_block / share_type::rows_at_once : 1;
      OCTAVO_UNROLL
      for (int first = 0; first < share_type::tokens; first += run) {
        float column[channels] = {};
        OCTAVO_UNROLL
        for (int i = first; i < first + run; ++i) {
          float x[channels], amax = 0;
          of.get(i, x);
          OCTAVO_UNROLL
          for (int c = 0; c < channels; ++c) {
            amax = finite_amax(amax, x[c]);
            column[c] = finite_amax(column[c], x[c]);
          }
          amax = share.template max_over_threads<block_threads>(amax);
          if (share.in_row % block_threads == 0)
            memory.row_scale[share.token(i)][share.channel() / mx_block] =
                scale_for<E>(detail::bit_cast<std::uint32_t>(amax)).bits;
        }
        write_column_maxima(share, column, memory.amax[M::thread_index() / M::lanes][block_of(share.token(first))]);
      }
      M::sync_block();
      for (int i = M::thread_index(); i < token_blocks * D; i += threads) {
        std::uint32_t amax = 0;
        OCTAVO_UNROLL
        for (int warp = 0; warp < warps; ++warp) amax = detail::larger(amax, memory.amax[warp][i / D][i % D]);
        memory.column_scale[i / D][i % D] = scale_for<E>(amax).bits;
      }
    }
    /// The warp's maxima of columns, from those of its threads. At each exchange a thread gives away one half of its channels
    /// and folds the other one, so that in the end all lanes have different ones.
    OCTAVO_DEVICE static void write_column_maxima(const share_type& share, float (&x)[share_type::channels],
                                                  std::uint32_t (&to)[D]) {
      constexpr int row_threads = share_type::row_threads, left = share_type::channels * row_threads / M::lanes;
      static_assert(left >= 1, "every lane ends with a channel: tiles of narrower rows leave some without");
      const int lane = M::thread_index() % M::lanes;
      int channel = share.channel();
      OCTAVO_UNROLL
      for (int bit = row_threads, half = share_type::channels / 2; bit < M::lanes; bit *= 2, half /= 2) {
        const bool upper = (lane & bit) != 0;
        OCTAVO_UNROLL
        for (int c = 0; c < half; ++c) {
          const float given = upper ? x[c] : x[c + half], kept = upper ? x[c + half] : x[c];
          x[c] = fmaxf(kept, M::shuffle_xor(given, bit));
        }
        channel += upper ? half : 0;
      }
      OCTAVO_UNROLL
      for (int c = 0; c < left; ++c) to[channel + c] = detail::bit_cast<std::uint32_t>(x[c]);
    }
    OCTAVO_DEVICE void by_rows(const share_type& share, const shared& memory, int i, std::uint32_t (&bytes)[2]) const {
      float x[share_type::channels];
      of.get(i, x);
      const float reciprocal = reciprocal_of(e8m0{memory.row_scale[share.token(i)][share.channel() / mx_block]});
      encode_channels<M, E>(x, [&](int) { return reciprocal; }, bytes);
    }
    OCTAVO_DEVICE void by_columns(const share_type& share, const shared& memory, int i,
                                  std::uint32_t (&bytes)[2]) const {
      float x[share_type::channels];
      of.get(i, x);
      const std::uint8_t* const scales = &memory.column_scale[block_of(share.token(i))][share.channel()];
      encode_channels<M, E>(x, [&](int c) { return reciprocal_of(e8m0{scales[c]}); }, bytes);
    }
  };

  /// The payloads that the caller brings. A scale that is NaN makes its elements NaN; the atom multiplies by numbers only.
  struct given_payloads {
    const quantise_blocks_kernel& kernel;
    const tile_place& here;
    const share_type& share;

    OCTAVO_DEVICE bool exists(int token, int channel) const { return token < here.tokens && channel < kernel.at.d; }
    OCTAVO_DEVICE e8m0 row_scale(int token, int channel) const {
      if (!exists(token, channel)) return e8m0::from_exponent(0);
      const auto* const scales = static_cast<const std::uint8_t*>(kernel.given.rowwise_scale);
      return {scales[kernel.at.rowwise_first(here.document, here.h) +
                     ((here.first + token) * kernel.at.d + channel) / mx_block]};
    }
    OCTAVO_DEVICE e8m0 column_scale(int block, int channel) const {
      if (!exists(block * mx_block, channel)) return e8m0::from_exponent(0);
      const auto* const scales = static_cast<const std::uint8_t*>(kernel.given.columnwise_scale);
      return {scales[kernel.at.columnwise_first(here.document, here.h) + (here.first / mx_block + block) * kernel.at.d +
                     channel]};
    }
    OCTAVO_DEVICE static std::uint8_t number(e8m0 scale) {
      return scale.is_nan() ? e8m0::from_exponent(0).bits : scale.bits;
    }

    OCTAVO_DEVICE void find_scales(const share_type&, shared& memory) const {
      for (int i = M::thread_index(); i < tile_tokens * row_blocks; i += threads)
        memory.row_scale[i / row_blocks][i % row_blocks] = number(row_scale(i / row_blocks, i % row_blocks * mx_block));
      for (int i = M::thread_index(); i < token_blocks * D; i += threads)
        memory.column_scale[i / D][i % D] = number(column_scale(i / D, i % D));
    }
    OCTAVO_DEVICE void load(const const_tensor& from, int token, std::uint32_t (&bytes)[2]) const {
      bytes[0] = bytes[1] = 0;
      const tile_rows rows(from, 1, kernel.at, here, share);
      if (exists(token, share.channel())) load_words<std::uint8_t>(rows[token], rows.wide, bytes);
    }
    OCTAVO_DEVICE void by_rows(const share_type&, const shared&, int i, std::uint32_t (&bytes)[2]) const {
      load(kernel.given.rowwise, share.token(i), bytes);
      if (row_scale(share.token(i), share.channel()).is_nan()) bytes[0] = bytes[1] = nan_bytes;
    }
    OCTAVO_DEVICE void by_columns(const share_type&, const shared&, int i, std::uint32_t (&bytes)[2]) const {
      load(kernel.given.columnwise, share.token(i), bytes);
      OCTAVO_UNROLL
      for (int c = 0; c < share.channels; ++c)
        if (share.token(i) < here.tokens && column_scale(block_of(share.token(i)), share.channel() + c).is_nan())
          bytes[c / 4] |= (nan_bytes & 0xff) << c % 4 * 8;
    }
  };

  /// A thread's eight bytes of a token, and what they say of it.
  OCTAVO_DEVICE static void put(const share_type& share, int token, const std::uint32_t (&bytes)[2], shared& memory) {
    std::uint32_t* to = &memory.payload[token][share.channel() / 4];
    to[0] = bytes[0], to[1] = bytes[1];
    if ((nonfinite_bytes<E>(bytes[0]) | nonfinite_bytes<E>(bytes[1])) != 0)
      M::atomic_or(&memory.nonfinite[token / 32], 1u << token % 32);
  }

  OCTAVO_DEVICE static void write_plain(std::uint8_t* to, const share_type& share, const shared& memory) {
    writer::write_plain(to, share, memory.payload);
    for (int i = M::thread_index(); i < tile_tokens * row_blocks; i += threads)
      to[tile_tokens * D + i] = memory.row_scale[i / row_blocks][i % row_blocks];
  }
  OCTAVO_DEVICE void write_kept_scales(const tile_place& here, const shared& memory) const {
    const int d = static_cast<int>(at.d), blocks = d / mx_block;
    if (made.rowwise_scale != nullptr) {
      auto* const to = static_cast<std::uint8_t*>(made.rowwise_scale) + at.rowwise_first(here.document, here.h) +
                       here.first * blocks;
      for (int i = M::thread_index(); i < here.tokens * blocks; i += threads)
        to[i] = memory.row_scale[i / blocks][i % blocks];
    }
    if (made.columnwise_scale != nullptr) {
      auto* const to = static_cast<std::uint8_t*>(made.columnwise_scale) + at.columnwise_first(here.document, here.h) +
                       here.first / mx_block * d;
      for (int i = M::thread_index(); i < (here.tokens + mx_block - 1) / mx_block * d; i += threads)
        to[i] = memory.column_scale[i / d][i % d];
    }
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
