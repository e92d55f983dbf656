// SPDX-License-Identifier: Apache-2.0
// Makes the per-row terms of the backward (simt/row_term_tile.hpp).
#pragma once

#include <octavo/algorithm/delta_pass.hpp>
#include <octavo/backends/cuda/common/scores.hpp>
#include <octavo/backends/cuda/common/visible_tiles.hpp>
#include <octavo/backends/simt/row_term_tile.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

using simt::row_term_tile;

/// Makes them from the sums of the matched delta or from O, and what the generic sink gradient reads.
/// Eight threads a row. Operand: image_operand of the schedules.
template <class Recipe, class Delta, int D, class Operand>
struct row_terms_kernel {
  static constexpr int threads = 256, shared_bytes = 0, blocks_per_sm = 2;
  static constexpr int lanes = 8, channels = D / lanes;

  backward_data<Recipe> data;
  Operand dout;  ///< consistent: dO as dP is made of it
  const_tensor dout_given, o, o_residual;
  const float* shift = nullptr;  ///< matched: c
  delta_outputs sums;            ///< matched
  const float* l = nullptr;
  row_term_tile* terms = nullptr;  ///< [h_q][slots]
  float* delta_out = nullptr;      ///< [b, h_q, s_q] or null

  std::int64_t blocks() const { return data.forward.q_docs.slots(tile_tokens) * data.forward.problem.h_q; }

  OCTAVO_DEVICE void operator()() const {
    const pass_data<Recipe>& d = data.forward;
    const std::int64_t slots = dout.slots, h = ptx::block_index() / slots, slot = ptx::block_index() % slots;
    const token_tile tile = d.q_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    const head_of_document at = d.head(tile.document, h);
    row_term_tile& to = terms[h * slots + slot];
    const int lane = ptx::thread_index() % lanes;
    if (ptx::thread_index() < 4) to.nonfinite[ptx::thread_index()] = to.special[ptx::thread_index()] = 0;
    ptx::sync_block();
    for (int row = ptx::thread_index() / lanes; row < tile_tokens; row += threads / lanes) {
      const bool exists = row < tile.tokens;
      const std::int64_t index = exists ? d.statistic(tile.document, h, tile.first + row) : 0;
      float c = 0, delta = 0, sum = 0;
      if constexpr (Delta::reads_o) {
        // All lanes of a warp add up, also those of absent rows.
        const bool has_dot = exists && at.q.length != 0;
        delta = sum_over_lanes(has_dot ? dot_with_o(at, slot, tile.first + row, row, lane) : 0.0f);
        if (exists) sum = l[index];
      } else if (exists) {
        sum = sums.n[index];
        c = shift[index];
        delta = weighted(reciprocal_or_zero(sum), sums.sum[index]);
      }
      if (lane != 0) continue;
      const float weight = reciprocal_or_zero(sum);
      if (exists) write(index, c, delta, weight);
      const float m = exists ? data.m[index] : 0.0f;
      to.template set<Delta, typename Recipe::element>(row, m, sum, c, delta);
      const std::uint32_t bit = 1u << row % 32;
      if (row_term_tile::is_special(m)) ptx::atomic_or(&to.special[row / 32], bit);
      if (!(fabsf(c + delta) < detail::float_infinity())) ptx::atomic_or(&to.nonfinite[row / 32], bit);
    }
  }

 private:
  OCTAVO_DEVICE void write(std::int64_t index, float c, float delta, float weight) const {
    data.rows.shift[index] = c;
    data.rows.delta[index] = delta;
    data.rows.weight[index] = weight;
    if (delta_out != nullptr) delta_out[index] = c + delta;
  }
  static OCTAVO_DEVICE float sum_over_lanes(float x) {
    for (int lanes_apart = 1; lanes_apart < lanes; lanes_apart *= 2) x += ptx::shuffle_xor(x, lanes_apart);
    return x;
  }

  /// This lane's part of dO . O: dO as given (stale) or as the products see it (consistent).
  OCTAVO_DEVICE float dot_with_o(const head_of_document& at, std::int64_t slot, std::int64_t token, int row,
                                 int lane) const {
    const documents& docs = data.forward.q_docs;
    float x[channels], y[channels], r[channels];
    const auto read = [&](const const_tensor& t, float* to) {
      read_elements(t, element_offset(t, docs, at.document, token, at.h_q) + lane * channels, channels, to);
    };
    read(o, y);
    if (Delta::reuses_forward_p || !dout_given) {
      dout.template decode<Recipe, D>(dout.tile(at.h_q, slot), row, lane * channels, x);
    } else {
      read(dout_given, x);
    }
    if (Delta::reuses_forward_p && o_residual) {
      read(o_residual, r);
      for (int c = 0; c < channels; ++c) y[c] += r[c];
    }
    float sum = 0;
    for (int c = 0; c < channels; ++c) sum += x[c] * y[c];
    return sum;
  }
};

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
