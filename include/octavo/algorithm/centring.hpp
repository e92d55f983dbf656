// SPDX-License-Identifier: Apache-2.0
// Key centring: softmax does not change when k_j becomes k_j - u, so any u may be taken from the keys before they are
// quantised. The quantiser then sees smaller numbers, and what is left of a row-sum error multiplies nearly nothing.
// What centring takes from the scores of row i, scale * q_i . u, returns in its LSE and is what a sink has to meet.
#pragma once

#include <octavo/algorithm/carver.hpp>
#include <octavo/algorithm/pass_data.hpp>
#include <octavo/scaling/dequantize.hpp>

OCTAVO_BEGIN_NAMESPACE

/// Sums of the keys of every part, channel by channel: [slots][h_kv][d_qk].
template <class B>
struct key_sums_kernel {
  const_tensor k;
  documents docs;
  std::int64_t heads = 0, d = 0;
  double* sums = nullptr;

  OCTAVO_HD std::int64_t items() const { return docs.slots(part_tokens) * heads * d; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const std::int64_t c = item % d, h = item / d % heads;
    const token_tile part = docs.tile_at(item / d / heads, part_tokens);
    double sum = 0;
    for (int j = 0; j < part.tokens; ++j) {
      float x;
      read_elements(k, element_offset(k, docs, part.document, part.first + j, h) + c, 1, &x);
      // A key that is not finite poisons its own scores; the mean must not carry it to all others.
      sum += x - x == 0 ? x : 0.0f;
    }
    sums[item] = sum;
  }
};

/// u = the mean key of each document and kv head, [b, h_kv, d_qk].
template <class B>
struct key_mean_kernel {
  documents docs;
  std::int64_t heads = 0, d = 0;
  const double* sums = nullptr;  ///< of key_sums_kernel
  float* mean = nullptr;

  OCTAVO_HD std::int64_t items() const { return docs.count * heads * d; }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const std::int64_t document = item / d / heads, tokens = docs.run(document).length;
    const std::int64_t first = docs.first_slot(document, part_tokens), parts = ceil_div(tokens, part_tokens);
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[(first + part) * heads * d + item % (heads * d)];
    mean[item] = tokens > 0 ? static_cast<float>(sum / static_cast<double>(tokens)) : 0.0f;
  }
};

/// scale * q_i . u for every row, [b, h_q, s_q]. q as given; from its payload where only that is there.
template <class B, class Recipe>
struct q_shift_kernel {
  static constexpr int max_channels = B::max_head_dim;

  pass_data<Recipe> data;
  const_tensor q;
  const float* key_shift = nullptr;
  float* q_shift = nullptr;

  OCTAVO_HD std::int64_t items() const {
    return data.q_docs.slots(part_tokens) * data.problem.h_q * std::int64_t{part_tokens};
  }

  OCTAVO_HD void operator()(typename B::context&, std::int64_t item) const {
    const problem& p = data.problem;
    const std::int64_t h = item / part_tokens % p.h_q;
    const token_tile part = data.q_docs.tile_at(item / part_tokens / p.h_q, part_tokens);
    const int i = static_cast<int>(item % part_tokens), d = static_cast<int>(p.d_qk);
    if (i >= part.tokens) return;
    float row[max_channels], sum = 0;
    if (!data.q_docs.is_tail(part.document)) {
      const float* u = key_shift + (part.document * p.h_kv + h / p.group()) * p.d_qk;
      if (q)
        read_elements(q, element_offset(q, data.q_docs, part.document, part.first + i, h), d, row);
      else
        dequantize_row<Recipe, typename Recipe::element>(data.q_plane(data.head(part.document, h)), part.first + i, d,
                                                         row);
      for (int c = 0; c < d; ++c) sum += row[c] * u[c];
    }
    q_shift[data.statistic(part.document, h, part.first + i)] = sum * data.scale;
  }
};

/// What centring needs in a pass: its part of the workspace, and its kernels in the order in which they run.
template <class B>
struct centring {
  const float* key_shift = nullptr;  ///< u [b, h_kv, d_qk], or null
  float *key_mean = nullptr, *q_shift = nullptr;
  double* sums = nullptr;

  void carve(detail::carver& memory, const problem& p, const documents& keys, const float* given) {
    if (p.key_centring == key_centring::off) return;
    if (p.key_centring == key_centring::batch) {
      sums = memory.take<double>(keys.slots(part_tokens) * p.h_kv * p.d_qk);
      key_mean = memory.take<float>(p.b * p.h_kv * p.d_qk);
    }
    q_shift = memory.take<float>(p.stat_rows() * p.h_q);
    key_shift = p.key_centring == key_centring::given ? given : key_mean;
  }
  /// run: runs a kernel. Before the keys are quantised.
  template <class Run>
  void find_mean(Run run, const problem& p, const const_tensor& k, const documents& keys) const {
    if (key_mean == nullptr) return;
    run(key_sums_kernel<B>{k, keys, p.h_kv, p.d_qk, sums});
    run(key_mean_kernel<B>{keys, p.h_kv, p.d_qk, sums, key_mean});
  }
  /// q: as given, or null where only its payload is there. After the queries are quantised.
  template <class Run, class Recipe>
  void find_shifts(Run run, const pass_data<Recipe>& data, const const_tensor& q) const {
    if (q_shift != nullptr) run(q_shift_kernel<B, Recipe>{data, q, key_shift, q_shift});
  }
};

OCTAVO_END_NAMESPACE
