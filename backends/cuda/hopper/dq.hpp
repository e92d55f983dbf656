// SPDX-License-Identifier: Apache-2.0
// dQ on Hopper, by blocks that own its rows: no reduction between blocks, the same bits in every run.
//
//     P = 2^(s - exponent)     dS = P ((dP - c) - (delta - c))     dQ += quant(dS) K     dS per query and 128 keys
//
// It costs S and dP once more than a loop that makes dQ beside dK and dV; in return no block waits for another, the
// rows of dS need no transposition, and each row has a scale of its own.
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/backends/cuda/hopper/row_loop.hpp>
#include <octavo/backends/simt/probabilities.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe, class Delta, int D>
struct dq_kernel {
  static constexpr const char* name = "hopper dQ";
  using G = typename Recipe::gradient_element;
  /// consistent with `token`: P takes in the scales of V as it did in the forward.
  static constexpr bool with_v_fold = folds_token_scales<Recipe> && Delta::reuses_forward_p;
  using loop = row_loop<Recipe, D, true, with_v_fold>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;
  static constexpr int columns = tile_tokens / 2;  ///< elements of a thread in S
  static constexpr bool folds = loop::folds;

  row_data<Recipe> data;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots]
  tensor dq;
  const float* key_shift = nullptr;  ///< u [b, h_kv, d] where keys are centred and rows may keep a sum
  float* row_sum = nullptr;          ///< [b, h_q, s_q] or null
  float* l1 = nullptr;
  work_list list{};  ///< of query tiles

  std::int64_t blocks(int multiprocessors) const { return list.blocks(multiprocessors); }
  OCTAVO_DEVICE void operator()() const { loop::run(*this); }

  struct consumer : loop::template rows_of_group<dq_kernel> {
    using loop_stage = typename loop::stage;

    float sum[2] = {0, 0}, magnitude[2] = {0, 0};
    float dq[D / 2] = {};
    float exponent[2] = {}, shift[2] = {}, delta[2] = {}, weight[2] = {};  ///< of the two rows: see row_term_tile
    std::uint32_t rare = 0;  ///< not 0 where a row has a large M, or something that is not finite

    OCTAVO_DEVICE void run(ring_place<loop::stages>& at) {
      load_terms();
      for (int t = this->seen.first; t < this->seen.last; ++t, at.advance()) add_tile(t, at);
      finish();
    }

   private:
    struct key_tile {
      int t;
      const loop_stage& stage;
    };

    OCTAVO_DEVICE void add_tile(int t, const ring_place<loop::stages>& at) {
      const key_tile tile{t, this->memory.ring_of[at.stage]};
      const loop_stage& from = tile.stage;
      float s[columns], dp[columns], part[D / 2], down[2];
      std::uint32_t packed[tile_tokens / 32][4];
      at.wait_full(this->memory.tiles);
      this->start_scores(at.stage, s);
      this->start_dp(at.stage, dp);
      make_p(s, dp, tile);
      make_ds(s, dp, tile);
      quantise(dp, from, packed, down);
      start_product(part, packed,
                    ptx::matrix::at(this->memory.ring_of[0].k_columns, D).behind(at.stage, sizeof(loop_stage)));
      finish_product<0>(part);
      at.release(this->memory.tiles, this->place.lane);
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; ++i) dq[i] = fmaf(part[i], down[row_half(i)], dq[i]);
    }

    OCTAVO_DEVICE void load_terms() {
      const row_term_tile& terms = this->of_tile.terms;
      rare = any_bit(terms.nonfinite) | any_bit(terms.special) | this->rows_nonfinite;
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int row = this->in_tile(half);
        exponent[half] = terms.exponent[row], shift[half] = terms.shift[row];
        delta[half] = terms.delta[row];
        if constexpr (Delta::reuses_forward_p) weight[half] = terms.weight[row];
      }
    }

    /// From products in flight to P (under a softcap: to scores, which its derivative needs as well) and raw dP.
    OCTAVO_DEVICE void make_p(float (&s)[columns], float (&dp)[columns], const key_tile& tile) const {
      finish_product<1>(s);
      const float k_scale = this->tile_scale(tile.stage.k_scale);
      float factor[2] = {at_least_tiny(this->q_scale[0] * k_scale), at_least_tiny(this->q_scale[1] * k_scale)};
      scale_keys<folds>(s, tile.stage.k_scale, this->place.quad_lane);
      cap_scores(s, factor, this->map);
      round_large(s, factor, exponent);
      if (this->map.softcap == 0) [[likely]] {
        probabilities_of(s, 0, factor, tile.stage);
        if (!holds_tile(this->seen_by_all, tile.t)) [[unlikely]]
          forbid(s, 0.0f, this->keys, tile.t * tile_tokens, this->place.quad_lane);
      }
      finish_product<0>(dp);
    }
    /// Elements [first, first + N) of the fragment.
    template <int N>
    OCTAVO_DEVICE void probabilities_of(float (&x)[N], int first, const float (&factor)[2],
                                        const loop_stage& from) const {
      simt::probabilities<functions, Recipe, Delta>(
          x, false, [&](int i) { return factor[row_half(first + i)]; },
          [&](int i) { return exponent[row_half(first + i)]; }, [&](int i) { return weight[row_half(first + i)]; },
          [&](int i) { return fold(first + i, from); });
      if (Delta::reuses_forward_p || rare == 0) [[likely]]
        return;
      const row_term_tile& terms = this->of_tile.terms;  // 1, or of a row with a large M
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) x[i] *= terms.weight[this->in_tile(row_half(first + i))];
    }
    /// log2 of the scale of V that the forward folded into P.
    OCTAVO_DEVICE float fold(int i, const loop_stage& from) const {
      return with_v_fold ? from.v_fold[column(i, this->place.quad_lane)] : 0.0f;
    }

    /// dS in the place of dP.
    OCTAVO_DEVICE void make_ds(const float (&s)[columns], float (&dp)[columns], const key_tile& tile) {
      const bool wants_sums =
          this->kernel.row_sum != nullptr || this->kernel.l1 != nullptr || this->kernel.key_shift != nullptr;
      const float v_scale = this->tile_scale(tile.stage.v_scale);
      const float dp_factor[2] = {this->do_scale[0] * v_scale, this->do_scale[1] * v_scale};
      const auto gradient = [&](float p, float x, int i) {
        return p * (fmaf(x, dp_factor[row_half(i)], -shift[row_half(i)]) - delta[row_half(i)]);
      };
      this->finish_dp(tile.stage, dp);
      if (this->map.softcap == 0) [[likely]] {
        if ((rare | any_bit(tile.stage.nonfinite)) == 0) [[likely]] {
          OCTAVO_UNROLL
          for (int i = 0; i < columns; ++i) dp[i] = gradient(s[i], dp[i], i);
        } else {
          // A pair without weight has no gradient, whatever dP and delta are.
          OCTAVO_UNROLL
          for (int i = 0; i < columns; ++i) dp[i] = s[i] == 0 ? 0.0f : gradient(s[i], dp[i], i);
        }
        if (wants_sums) [[unlikely]]
          add_sums(dp);
        return;
      }
      // s holds scores: their P comes four at a time, so that both need not be kept.
      const float factor[2] = {1, 1};
      OCTAVO_UNROLL
      for (int first = 0; first < columns; first += 4) {
        float p[4] = {s[first], s[first + 1], s[first + 2], s[first + 3]}, ds[4];
        probabilities_of(p, first, factor, tile.stage);
        OCTAVO_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int i = first + e;
          const bool seen = this->keys[row_half(i)].allows(tile.t * tile_tokens + column(i, this->place.quad_lane));
          ds[e] = seen && p[e] != 0 ? gradient(p[e], dp[i], i) : 0.0f;
          dp[i] = weighted(ds[e], this->map.cap_derivative(s[i]));
        }
        if (wants_sums) add_sums(ds);
      }
    }
    /// Runs of four elements from a multiple of four on.
    template <int N>
    OCTAVO_DEVICE void add_sums(const float (&ds)[N]) {
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) {
        sum[row_half(i)] += ds[i];
        magnitude[row_half(i)] += fabsf(ds[i]);
      }
    }

    /// dS rounded with a power of two per row, the key scales of `token` folded in before; down undoes it and the tile's
    /// scale.
    OCTAVO_DEVICE void quantise(float (&ds)[columns], const loop_stage& from,
                                std::uint32_t (&packed)[tile_tokens / 32][4], float (&down)[2]) const {
      float amax[2], up[2];
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < columns; ++i) ds[i] *= from.k_scale[column(i, this->place.quad_lane)];
      }
      row_amax(ds, amax);
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const power_of_two_scale scale = power_of_two_scale::of<G>(max_over_quad(amax[half]));
        up[half] = scale.up, down[half] = scale.down * this->tile_scale(from.k_scale);
      }
      OCTAVO_UNROLL
      for (int i = 0; i < columns; ++i) ds[i] *= up[row_half(i)];
      pack_rows<G>(ds, packed);
    }
    OCTAVO_DEVICE void finish() {
      const pass_data<Recipe>& d = this->forward();
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        sum[half] = sum_over_quad(sum[half]);
        magnitude[half] = sum_over_quad(magnitude[half]);
        if (!this->exists(half) || this->place.quad_lane != 0) continue;
        const std::int64_t row = this->statistic(half);
        if (this->kernel.row_sum != nullptr)
          this->kernel.row_sum[row] = sum[half] + sink_gradient<functions>(this->kernel.data.backward,
                                                                           this->work.document, this->work.head, row);
        if (this->kernel.l1 != nullptr) this->kernel.l1[row] = magnitude[half];
      }
      // k_j = centred k_j + u: where the rows of dS sum to zero u drops out, else it does not.
      const float* u = this->kernel.key_shift;
      if (u != nullptr && !d.q_docs.is_tail(this->work.document))
        u += (this->work.document * d.problem.h_kv + this->work.head / d.problem.group()) * D;
      else
        u = nullptr;
      if (u != nullptr) {
        OCTAVO_UNROLL
        for (int i = 0; i < D / 2; ++i) dq[i] = fmaf(u[column(i, this->place.quad_lane)], sum[row_half(i)], dq[i]);
      }
      const tensor& to = this->kernel.dq;
      const std::int64_t first =
          element_offset(to, d.q_docs, this->work.document, this->row(0), this->work.head) + 2 * this->place.quad_lane;
      const bool exists[2] = {this->exists(0), this->exists(1)};
      const fragment_writer<D / 2> writer(to, first, exists);
      writer.write([&](int i) { return dq[i] * d.scale; });
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
