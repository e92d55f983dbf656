// SPDX-License-Identifier: Apache-2.0
// Makes the per-row terms of the backward (row_term_tile.hpp) from the sums of the matched delta or from O, and what the
// generic sink gradient reads. Eight threads a row.
#pragma once

#include <octavo/algorithm/delta_pass.hpp>
#include <octavo/backends/simt/images.hpp>
#include <octavo/backends/simt/row_term_tile.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, class Delta, int D>
struct row_terms_kernel {
  using machine = M;
  static constexpr int threads = 256, shared_bytes = 0, blocks_per_sm = 2;
  static constexpr int row_threads = 8;
  using G = typename Recipe::gradient_element;

  backward_data<Recipe> data;
  image_operand dout;  ///< consistent: dO as dP is made of it, its payload plain
  const_tensor dout_given, o, o_residual;
  const float* shift = nullptr;  ///< matched: c
  delta_outputs sums;            ///< matched
  const float* l = nullptr;
  row_term_tile* terms = nullptr;  ///< [h_q][slots]
  float* delta_out = nullptr;      ///< [b, h_q, s_q] or null

  std::int64_t blocks() const { return data.forward.q_docs.slots(tile_tokens) * data.forward.problem.h_q; }

  OCTAVO_DEVICE void operator()() const {
    const pass_data<Recipe>& d = data.forward;
    const std::int64_t slots = dout.slots, h = M::block_index() / slots, slot = M::block_index() % slots;
    const token_tile tile = d.q_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    const head_of_document at = d.head(tile.document, h);
    row_term_tile& to = terms[h * slots + slot];
    const int in_row = M::thread_index() % row_threads;
    if (M::thread_index() < 4) to.nonfinite[M::thread_index()] = to.special[M::thread_index()] = 0;
    M::sync_block();
    for (int row = M::thread_index() / row_threads; row < tile_tokens; row += threads / row_threads) {
      const bool exists = row < tile.tokens;
      const std::int64_t index = exists ? d.statistic(tile.document, h, tile.first + row) : 0;
      float c = 0, delta = 0, sum = 0;
      if constexpr (Delta::reads_o) {
        // All lanes of a warp add up, also those of absent rows.
        const bool has_dot = exists && at.q.length != 0;
        delta = sum_over_threads(has_dot ? dot_with_o(at, h * slots + slot, tile.first + row, row, in_row) : 0.0f);
        if (exists) sum = l[index];
      } else if (exists) {
        sum = sums.n[index];
        c = shift[index];
        delta = weighted(reciprocal_or_zero(sum), sums.sum[index]);
      }
      if (in_row != 0) continue;
      const float weight = reciprocal_or_zero(sum);
      if (exists) write(index, c, delta, weight);
      const float m = exists ? data.m[index] : 0.0f;
      to.template set<Delta, typename Recipe::element>(row, m, sum, c, delta);
      const std::uint32_t bit = 1u << row % 32;
      if (row_term_tile::is_special(m)) M::atomic_or(&to.special[row / 32], bit);
      if (!(fabsf(c + delta) < detail::float_infinity())) M::atomic_or(&to.nonfinite[row / 32], bit);
    }
  }

 private:
  OCTAVO_DEVICE void write(std::int64_t index, float c, float delta, float weight) const {
    data.rows.shift[index] = c;
    data.rows.delta[index] = delta;
    data.rows.weight[index] = weight;
    if (delta_out != nullptr) delta_out[index] = c + delta;
  }
  static OCTAVO_DEVICE float sum_over_threads(float x) {
    for (int apart = 1; apart < row_threads; apart *= 2) x += M::shuffle_xor(x, apart);
    return x;
  }

  /// This thread's part of dO . O: dO as given (stale) or as the products see it (consistent). Runs of four channels in
  /// turn, so that neighbours read side by side.
  OCTAVO_DEVICE float dot_with_o(const head_of_document& at, std::int64_t tile, std::int64_t token, int row,
                                 int in_row) const {
    const documents& docs = data.forward.q_docs;
    const bool quantised = Delta::reuses_forward_p || !dout_given, residual = Delta::reuses_forward_p && o_residual;
    constexpr bool scaled = scales_in_atom<Recipe>;
    const float of_row = dout.template scale_of<Recipe>(tile, row);
    const std::uint8_t* const plain = dout.images.plain + tile * plain_bytes<scaled>(D);
    const std::uint8_t* const payload = plain + row * D;
    const std::uint8_t* const of_blocks = plain + tile_tokens * D + row * (D / mx_block);
    const int d = static_cast<int>(data.forward.problem.d_v);
    float sum = 0;
    for (int first = 4 * in_row; first < d; first += 4 * row_threads) {
      float x[4], y[4], r[4];
      const auto read = [&](const const_tensor& t, float* to) {
        read_elements(t, element_offset(t, docs, at.document, token, at.h_q) + first, 4, to);
      };
      read(o, y);
      if (quantised) {
        const float scale = scaled ? static_cast<float>(e8m0{of_blocks[first / mx_block]}) : of_row;
        for (int c = 0; c < 4; ++c) x[c] = G::decode(payload[first + c]) * scale;
      } else {
        read(dout_given, x);
      }
      if (residual) {
        read(o_residual, r);
        for (int c = 0; c < 4; ++c) y[c] += r[c];
      }
      for (int c = 0; c < 4; ++c) sum += x[c] * y[c];
    }
    return sum;
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
