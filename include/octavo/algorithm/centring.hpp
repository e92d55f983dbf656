// SPDX-License-Identifier: Apache-2.0
// Key centring: softmax does not change when k_j becomes k_j - u, so any u may be taken from the keys before they are
// quantised. The quantiser then sees smaller numbers, and what is left of a row-sum error multiplies nearly nothing.
// What centring takes from the scores of row i, scale * q_i . u, returns in its LSE and is what a sink has to meet.
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/scaling/dequantize.hpp>

OCTAVO_BEGIN_NAMESPACE

/// u = the mean key of each document and kv head, [b, h_kv, d_qk].
template <class B>
struct key_mean_kernel {
  static constexpr int max_channels = 256;

  const_tensor k;
  documents docs;
  std::int64_t heads = 0, d = 0;
  float* mean = nullptr;

  OCTAVO_HD std::int64_t items() const { return docs.count * heads; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const std::int64_t document = item / heads, h = item % heads, tokens = docs.run(document).length;
    double sum[max_channels] = {};
    float row[max_channels];
    for (std::int64_t j = 0; j < tokens; ++j) {
      read_elements(k, element_offset(k, docs, document, j, h), static_cast<int>(d), row);
      // A key that is not finite poisons its own scores; the mean must not carry it to all others.
      for (std::int64_t c = 0; c < d; ++c) sum[c] += row[c] - row[c] == 0 ? row[c] : 0.0f;
    }
    for (std::int64_t c = 0; c < d; ++c)
      mean[item * d + c] = tokens > 0 ? static_cast<float>(sum[c] / static_cast<double>(tokens)) : 0.0f;
  }
};

/// scale * q_i . u for every row, [b, h_q, s_q]. q as given; from its payload where only that is there.
template <class B, class Recipe>
struct q_shift_kernel {
  static constexpr int M = B::tile_q;
  static constexpr int max_channels = 256;

  pass_data<Recipe> data;
  const_tensor q;
  const float* key_shift = nullptr;
  float* q_shift = nullptr;

  OCTAVO_HD std::int64_t items() const { return data.q_docs.slots(M) * data.problem.h_q; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const problem& p = data.problem;
    const std::int64_t h = item % p.h_q;
    const token_tile tile = data.q_docs.tile_at(item / p.h_q, M);
    const bool tail = data.q_docs.is_tail(tile.document);
    const int d = static_cast<int>(p.d_qk);
    const float scale = data.scale;
    for (int i = 0; i < tile.tokens; ++i) {
      float row[max_channels], sum = 0;
      if (!tail) {
        const float* u = key_shift + (tile.document * p.h_kv + h / p.group()) * p.d_qk;
        if (q)
          read_elements(q, element_offset(q, data.q_docs, tile.document, tile.first + i, h), d, row);
        else
          dequantize_row<Recipe, typename Recipe::element>(data.q_plane(data.head(tile.document, h)), tile.first + i, d,
                                                           row);
        for (int c = 0; c < d; ++c) sum += row[c] * u[c];
      }
      q_shift[data.statistic(tile.document, h, tile.first + i)] = sum * scale;
    }
  }
};

OCTAVO_END_NAMESPACE
