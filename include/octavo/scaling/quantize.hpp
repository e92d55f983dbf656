// SPDX-License-Identifier: Apache-2.0
// From a tensor of T to a payload and its scales, by the rules of each recipe:
//
//     exponent = ceil(log2(amax / max))   payload = round(x / 2^exponent)   nothing saturates
//
// (`tensor`: descale = amax / max in FP32, payload = round(x / descale)). amax runs over finite elements: one NaN does
// not spoil its neighbours' scale, and becomes NaN in the payload. amax 0 gives scale 1. Blocks start at the first
// token of a document; a tail block is scaled from its valid rows alone.
#pragma once

#include <octavo/numeric/fp16.hpp>
#include <octavo/scaling/plane.hpp>

OCTAVO_BEGIN_NAMESPACE

/// Element `index` of a tensor of float, fp16, bf16, e4m3 or e5m2, as a float.
OCTAVO_HD inline float read_element(const const_tensor& t, std::int64_t index) {
  switch (t.type) {
    case dtype::f32:
      return static_cast<const float*>(t.data)[index];
    case dtype::f16:
      return static_cast<float>(fp16{static_cast<const std::uint16_t*>(t.data)[index]});
    case dtype::bf16:
      return static_cast<float>(bf16{static_cast<const std::uint16_t*>(t.data)[index]});
    case dtype::e4m3:
      return static_cast<float>(e4m3{static_cast<const std::uint8_t*>(t.data)[index]});
    case dtype::e5m2:
      return static_cast<float>(e5m2{static_cast<const std::uint8_t*>(t.data)[index]});
  }
  return 0;
}

/// n consecutive elements from `index` on, as floats; one loop per type, so that each can be vectorised.
OCTAVO_HD inline void read_elements(const const_tensor& t, std::int64_t index, int n, float* out) {
  const auto each = [&](auto as) {
    using T = decltype(as);
    const T* from = static_cast<const T*>(t.data) + index;
    for (int c = 0; c < n; ++c) out[c] = static_cast<float>(from[c]);
  };
  switch (t.type) {
    case dtype::f32:
      return each(float{});
    case dtype::f16:
      return each(fp16{});
    case dtype::bf16:
      return each(bf16{});
    case dtype::e4m3:
      return each(e4m3{});
    case dtype::e5m2:
      return each(e5m2{});
  }
}

/// Writes n floats from `index` on, rounded to the tensor's type (float, fp16, bf16).
OCTAVO_HD inline void write_elements(const tensor& t, std::int64_t index, int n, const float* in) {
  const auto each = [&](auto as) {
    using T = decltype(as);
    T* to = static_cast<T*>(t.data) + index;
    for (int c = 0; c < n; ++c) to[c] = T::nearest_even(in[c]);
  };
  switch (t.type) {
    case dtype::f32:
      for (int c = 0; c < n; ++c) static_cast<float*>(t.data)[index + c] = in[c];
      return;
    case dtype::f16:
      return each(fp16{});
    case dtype::bf16:
      return each(bf16{});
    default:
      return;  // no result is written in FP8: features.hpp names that wish and supports refuses it
  }
}

/// x rounded to the type of a result tensor: what a later read of the tensor will give.
OCTAVO_HD inline float round_to(dtype type, float x) {
  return type == dtype::bf16 ? bf16::round(x) : type == dtype::f16 ? static_cast<float>(fp16::nearest_even(x)) : x;
}

/// The larger of amax and |x|, where x is finite. On bit patterns, which order magnitudes as numbers do, so that loops
/// over it become vector code.
OCTAVO_HD inline float finite_amax(float amax, float x) {
  const std::uint32_t magnitude = detail::bit_cast<std::uint32_t>(x) & detail::float_magnitude_mask;
  const std::uint32_t finite = magnitude < detail::float_exponent_mask ? magnitude : 0;
  const std::uint32_t largest = detail::bit_cast<std::uint32_t>(amax);
  return detail::bit_cast<float>(finite > largest ? finite : largest);
}

/// finite_amax over a whole row: sixteen running maxima, independent of each other. count is a multiple of 16.
OCTAVO_HD inline float finite_amax(const float* x, int count) {
  float lane[16] = {};
  for (int j = 0; j < count; j += 16)
    for (int t = 0; t < 16; ++t) lane[t] = finite_amax(lane[t], x[j + t]);
  for (int t = 1; t < 16; ++t) lane[0] = finite_amax(lane[0], lane[t]);
  return lane[0];
}

/// round(x / scale) for n elements, with the reciprocal of a power of two, which is exact. An infinity is not a large
/// number to be saturated: the difference, 0 for every finite x, makes it NaN, as it makes the rows that it reaches.
template <class E>
OCTAVO_HD void encode(const float* __restrict x, int n, float reciprocal, std::uint8_t* __restrict to) {
  for (int c = 0; c < n; ++c) to[c] = E::nearest_even(x[c] * reciprocal + (x[c] - x[c])).bits;
}
/// The same with a reciprocal per element.
template <class E>
OCTAVO_HD void encode(const float* __restrict x, int n, const float* __restrict reciprocal,
                      std::uint8_t* __restrict to) {
  for (int c = 0; c < n; ++c) to[c] = E::nearest_even(x[c] * reciprocal[c] + (x[c] - x[c])).bits;
}

/// Where the quantiser of one tensor reads and writes. x: [b, s, heads, d] of T.
template <class Recipe, class E>
struct quantiser {
  const_tensor x;
  const float* shift = nullptr;  ///< [documents, heads, d] subtracted from every token (key centring), or null
  quantized out;
  scale_layout<Recipe> at;

  /// `tensor` only, before the blocks: the descale of (document, h).
  OCTAVO_HD void tensor_scale(std::int64_t document, std::int64_t h) const {
    float amax = 0, row[max_channels];
    for (std::int64_t i = 0; i < at.docs.run(document).length; ++i) {
      read(document, i, h, row);
      amax = finite_amax(amax, finite_amax(row, static_cast<int>(at.d)));
    }
    static_cast<float*>(out.rowwise_scale)[at.rowwise_first(document, h)] = amax > 0 ? amax / E::max : 1.0f;
  }

  /// One tile of at most 128 tokens of one head: payload and scales, both images where there are two.
  OCTAVO_HD void tile(const token_tile& t, std::int64_t h) const {
    if (t.tokens == 0 || at.docs.is_tail(t.document)) return;
    if constexpr (!recipe::is_fp8<Recipe>) {
      float row[max_channels];
      for (int i = 0; i < t.tokens; ++i) {
        read(t.document, t.first + i, h, row);
        write_elements(out.rowwise, element_offset(out.rowwise, at.docs, t.document, t.first + i, h),
                       static_cast<int>(at.d), row);
      }
    } else if constexpr (Recipe::scale_per == recipe::granularity::block32) {
      rowwise_blocks(t, h);
      columnwise_blocks(t, h);
    } else {
      token_scales(t, h);
    }
  }

 private:
  static constexpr int max_channels = 256;

  OCTAVO_HD void read(std::int64_t document, std::int64_t token, std::int64_t h, float* row) const {
    const int d = static_cast<int>(at.d);
    read_elements(x, element_offset(x, at.docs, document, token, h), d, row);
    if (shift == nullptr) return;
    const float* u = shift + (document * at.heads + h) * at.d;
    for (int c = 0; c < d; ++c) row[c] -= u[c];
  }
  OCTAVO_HD std::uint8_t* payload(const tensor& t, std::int64_t document, std::int64_t token, std::int64_t h) const {
    return static_cast<std::uint8_t*>(t.data) + element_offset(t, at.docs, document, token, h);
  }

  /// One scale per token, per 128 tokens or per tensor: one image.
  OCTAVO_HD void token_scales(const token_tile& t, std::int64_t h) const {
    constexpr bool per_token = Recipe::scale_per == recipe::granularity::token;
    float row[max_channels];
    const std::int64_t first = at.rowwise_first(t.document, h);
    const auto amax_of_row = [&] { return finite_amax(row, static_cast<int>(at.d)); };
    float reciprocal = 1;
    const auto keep = [&](float amax, std::int64_t index) {
      const e8m0 scale = e8m0::for_amax(amax, E::max);
      static_cast<std::uint8_t*>(out.rowwise_scale)[first + index] = scale.bits;
      reciprocal = exp2i(-scale.exponent());
    };
    if constexpr (Recipe::scale_per == recipe::granularity::tile128) {
      float amax = 0;
      for (int i = 0; i < t.tokens; ++i) {
        read(t.document, t.first + i, h, row);
        amax = finite_amax(amax, amax_of_row());
      }
      keep(amax, t.first / tile_block);
    }
    for (int i = 0; i < t.tokens; ++i) {
      read(t.document, t.first + i, h, row);
      if constexpr (per_token) keep(amax_of_row(), t.first + i);
      std::uint8_t* to = payload(out.rowwise, t.document, t.first + i, h);
      if constexpr (Recipe::scale_per == recipe::granularity::tensor) {
        // A division, not a product with the reciprocal: the descale is no power of two.
        const float descale = static_cast<const float*>(out.rowwise_scale)[first];
        for (std::int64_t c = 0; c < at.d; ++c) row[c] /= descale;
      }
      encode<E>(row, static_cast<int>(at.d), reciprocal, to);
    }
  }

  /// mx32, scales along d.
  OCTAVO_HD void rowwise_blocks(const token_tile& t, std::int64_t h) const {
    float row[max_channels];
    const std::int64_t blocks = at.d / mx_block;
    for (int i = 0; i < t.tokens; ++i) {
      read(t.document, t.first + i, h, row);
      std::uint8_t* to = payload(out.rowwise, t.document, t.first + i, h);
      std::uint8_t* scales =
          static_cast<std::uint8_t*>(out.rowwise_scale) + at.rowwise_first(t.document, h) + (t.first + i) * blocks;
      for (std::int64_t k = 0; k < blocks; ++k) {
        const e8m0 scale = e8m0::for_amax(finite_amax(row + k * mx_block, mx_block), E::max);
        scales[k] = scale.bits;
        const float reciprocal = exp2i(-scale.exponent());
        encode<E>(row + k * mx_block, mx_block, reciprocal, to + k * mx_block);
      }
    }
  }

  /// mx32, scales along the tokens. 128 is a multiple of 32, so a tile holds whole blocks.
  OCTAVO_HD void columnwise_blocks(const token_tile& t, std::int64_t h) const {
    float row[max_channels], reciprocal[max_channels];
    for (int begin = 0; begin < t.tokens; begin += mx_block) {
      const int tokens = t.tokens - begin < mx_block ? t.tokens - begin : mx_block;
      float amax[max_channels] = {};
      for (int i = 0; i < tokens; ++i) {
        read(t.document, t.first + begin + i, h, row);
        for (std::int64_t c = 0; c < at.d; ++c) amax[c] = finite_amax(amax[c], row[c]);
      }
      std::uint8_t* scales = static_cast<std::uint8_t*>(out.columnwise_scale) + at.columnwise_first(t.document, h) +
                             (t.first + begin) / mx_block * at.d;
      for (std::int64_t c = 0; c < at.d; ++c) {
        const e8m0 scale = e8m0::for_amax(amax[c], E::max);
        scales[c] = scale.bits;
        reciprocal[c] = exp2i(-scale.exponent());
      }
      for (int i = 0; i < tokens; ++i) {
        read(t.document, t.first + begin + i, h, row);
        std::uint8_t* to = payload(out.columnwise, t.document, t.first + begin + i, h);
        encode<E>(row, static_cast<int>(at.d), reciprocal, to);
      }
    }
  }
};

OCTAVO_END_NAMESPACE
