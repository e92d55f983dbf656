// SPDX-License-Identifier: Apache-2.0
// From a tensor of T to a payload and its scales, by the rules of each recipe:
//
//     exponent = ceil(log2(amax / max))   payload = round(x / 2^exponent)   nothing saturates
//
// (`tensor`: descale = amax / max in FP32, payload = round(x / descale)). amax runs over finite elements: one NaN does not
// spoil its neighbours' scale, and becomes NaN in the payload. amax 0 gives scale 1. Blocks start at the first token of a
// document; a tail block is scaled from its valid rows alone.
#pragma once

#include <octavo/numeric/fp16.hpp>
#include <octavo/scaling/plane.hpp>

#include <cstring>

OCTAVO_BEGIN_NAMESPACE

/// Element `index` of a tensor of float, fp16, bf16, e4m3 or e5m2, as a float.
OCTAVO_HD inline float read_element(const const_tensor& t, std::int64_t index) {
  switch (t.type) {
    case dtype::f32: return static_cast<const float*>(t.data)[index];
    case dtype::f16: return static_cast<float>(fp16{static_cast<const std::uint16_t*>(t.data)[index]});
    case dtype::bf16: return static_cast<float>(bf16{static_cast<const std::uint16_t*>(t.data)[index]});
    case dtype::e4m3: return static_cast<float>(e4m3{static_cast<const std::uint8_t*>(t.data)[index]});
    case dtype::e5m2: return static_cast<float>(e5m2{static_cast<const std::uint8_t*>(t.data)[index]});
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
    case dtype::f32: return each(float{});
    case dtype::f16: return each(fp16{});
    case dtype::bf16: return each(bf16{});
    case dtype::e4m3: return each(e4m3{});
    case dtype::e5m2: return each(e5m2{});
  }
}

/// Writes n floats from `index` on, rounded to the tensor's type (float, fp16, bf16).
OCTAVO_HD inline void write_elements(const basic_tensor<void>& t, std::int64_t index, int n, const float* in) {
  const auto each = [&](auto as) {
    using T = decltype(as);
    T* to = static_cast<T*>(t.data) + index;
    for (int c = 0; c < n; ++c) to[c] = T::nearest_even(in[c]);
  };
  switch (t.type) {
    case dtype::f32:
      for (int c = 0; c < n; ++c) static_cast<float*>(t.data)[index + c] = in[c];
      return;
    case dtype::f16: return each(fp16{});
    case dtype::bf16: return each(bf16{});
    default: return;  // no result is written in FP8: features.hpp names that wish and supports refuses it
  }
}

/// x rounded to the type of a result tensor: what a later read of the tensor will give.
OCTAVO_HD inline float round_to(dtype type, float x) {
  return type == dtype::bf16 ? bf16::round(x) : type == dtype::f16 ? static_cast<float>(fp16::nearest_even(x)) : x;
}

/// The larger of amax and |x|, where x is finite.
OCTAVO_HD inline float finite_amax(float amax, float x) {
  const float magnitude = x < 0 ? -x : x;
  return magnitude > amax && magnitude <= 3.40282347e38f ? magnitude : amax;
}

/// round(x / scale) with the reciprocal of a power of two, which is exact.
template <class E>
OCTAVO_HD std::uint8_t payload_of(float x, float reciprocal) {
  // An infinity is not a large number to be saturated: it makes the rows that it reaches NaN.
  const bool infinite = x - x != 0;
  return infinite ? E::from_bits(0x7f).bits : E::nearest_even(x * reciprocal).bits;
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
      for (std::int64_t c = 0; c < at.d; ++c) amax = finite_amax(amax, row[c]);
    }
    static_cast<float*>(out.rowwise_scale)[at.rowwise_first(document, h)] = amax > 0 ? amax / E::max : 1.0f;
  }

  /// One tile of at most 128 tokens of one head: payload and scales, both images where there are two.
  OCTAVO_HD void tile(const token_tile& t, std::int64_t h) const {
    if (t.tokens == 0) return;
    if constexpr (!recipe::is_fp8<Recipe>) {
      float row[max_channels];
      for (int i = 0; i < t.tokens; ++i) {
        read(t.document, t.first + i, h, row);
        write_elements(out.rowwise, element_offset(out.rowwise, at.docs, t.document, t.first + i, h), static_cast<int>(at.d), row);
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
    if (shift == nullptr || at.docs.is_tail(document)) return;
    const float* u = shift + (document * at.heads + h) * at.d;
    for (int c = 0; c < d; ++c) row[c] -= u[c];
  }
  OCTAVO_HD std::uint8_t* payload(const basic_tensor<void>& t, std::int64_t document, std::int64_t token, std::int64_t h) const {
    return static_cast<std::uint8_t*>(t.data) + element_offset(t, at.docs, document, token, h);
  }

  /// One scale per token, per 128 tokens or per tensor: one image.
  OCTAVO_HD void token_scales(const token_tile& t, std::int64_t h) const {
    constexpr bool per_token = Recipe::scale_per == recipe::granularity::token;
    float row[max_channels];
    const std::int64_t first = at.rowwise_first(t.document, h);
    const auto amax_of = [&] {
      float amax = 0;
      for (std::int64_t c = 0; c < at.d; ++c) amax = finite_amax(amax, row[c]);
      return amax;
    };
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
        const float a = amax_of();
        amax = a > amax ? a : amax;
      }
      keep(amax, t.first / tile_block);
    }
    for (int i = 0; i < t.tokens; ++i) {
      read(t.document, t.first + i, h, row);
      if constexpr (per_token) keep(amax_of(), t.first + i);
      std::uint8_t* to = payload(out.rowwise, t.document, t.first + i, h);
      if constexpr (Recipe::scale_per == recipe::granularity::tensor) {
        const float descale = static_cast<const float*>(out.rowwise_scale)[first];
        for (std::int64_t c = 0; c < at.d; ++c) to[c] = payload_of<E>(row[c] / descale, 1.0f);
      } else {
        for (std::int64_t c = 0; c < at.d; ++c) to[c] = payload_of<E>(row[c], reciprocal);
      }
    }
  }

  /// mx32, scales along d.
  OCTAVO_HD void rowwise_blocks(const token_tile& t, std::int64_t h) const {
    float row[max_channels];
    const std::int64_t blocks = at.d / mx_block;
    for (int i = 0; i < t.tokens; ++i) {
      read(t.document, t.first + i, h, row);
      std::uint8_t* to = payload(out.rowwise, t.document, t.first + i, h);
      std::uint8_t* scales = static_cast<std::uint8_t*>(out.rowwise_scale) + at.rowwise_first(t.document, h) + (t.first + i) * blocks;
      for (std::int64_t k = 0; k < blocks; ++k) {
        float amax = 0;
        for (int c = 0; c < mx_block; ++c) amax = finite_amax(amax, row[k * mx_block + c]);
        const e8m0 scale = e8m0::for_amax(amax, E::max);
        scales[k] = scale.bits;
        const float reciprocal = exp2i(-scale.exponent());
        for (int c = 0; c < mx_block; ++c) to[k * mx_block + c] = payload_of<E>(row[k * mx_block + c], reciprocal);
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
        for (std::int64_t c = 0; c < at.d; ++c) to[c] = payload_of<E>(row[c], reciprocal[c]);
      }
    }
  }
};

OCTAVO_END_NAMESPACE
