// SPDX-License-Identifier: Apache-2.0
// The sums of the matched delta on Hopper, n_i and sum_i of algorithm/delta_pass.hpp: S and dP once more, no O.
#pragma once

#include <octavo/backends/cuda/hopper/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe, int D>
struct delta_sums_kernel {
  static constexpr const char* name = "hopper delta pass";
  using loop = row_loop<Recipe, D, false>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;
  static constexpr int columns = tile_tokens / 2;  ///< elements of a thread

  row_data<Recipe> data;
  const float* given_shift = nullptr;  ///< c from the caller, or null
  delta_outputs sums;                  ///< n and sum, the sink's term included
  float* shift = nullptr;              ///< c that was used, or null
  work_list list{};                    ///< of query tiles

  std::int64_t blocks(int multiprocessors) const { return list.blocks(multiprocessors); }
  OCTAVO_DEVICE void operator()() const { loop::run(*this); }

  struct consumer : loop::template rows_of_group<delta_sums_kernel> {
    using loop_stage = typename loop::stage;

    float m[2] = {0, 0}, c[2] = {0, 0}, n[2] = {0, 0}, sum[2] = {0, 0};

    OCTAVO_DEVICE void run(ring_place<loop::stages>& at_stage) {
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        m[half] = this->exists(half) ? this->kernel.data.backward.m[this->statistic(half)] : 0.0f;
        if (this->kernel.given_shift != nullptr && this->exists(half))
          c[half] = this->kernel.given_shift[this->statistic(half)];
      }
      const int left = this->work.tokens - this->first_row;  // of the group's rows
      const int last_row = this->work.first + this->first_row + (left > 64 ? 63 : left > 0 ? left - 1 : 0);
      const int last_beginning = this->work.sees(last_row).first;
      const tile_run seen = this->seen;
      if (seen.first == seen.last) return finish();
      float s[columns];
      at_stage.wait_full(this->memory.tiles);
      this->start_scores(at_stage.stage, s);
      finish_product<0>(s);
      int t = seen.first;
      while (t + 1 < seen.last) {
        while (t + 1 < seen.last && is_plain(t, last_beginning, at_stage))
          add_tile<true, true>(t++, last_beginning, at_stage, s);
        if (t + 1 < seen.last) add_tile<false, true>(t++, last_beginning, at_stage, s);
      }
      add_tile<false, false>(t, last_beginning, at_stage, s);
      finish();
    }

   private:
    /// Nearly all tiles are plain: what the others need is not in the loop over these, since instructions that are jumped
    /// over are fetched late.
    OCTAVO_DEVICE bool is_plain(int t, int last_beginning, const ring_place<loop::stages>& at_stage) const {
      return this->map.softcap == 0 && !may_begin_rows(t, last_beginning) &&
             (this->rows_nonfinite | any_bit(this->memory.ring_of[at_stage.stage].nonfinite)) == 0;
    }
    /// Whether a row whose c is to be found may begin in tile t. Rows begin in order: once the last one has, none is left.
    OCTAVO_DEVICE bool may_begin_rows(int t, int last_beginning) const {
      return this->kernel.given_shift == nullptr && t * tile_tokens <= last_beginning;
    }

    /// One tile, whose raw scores s are there; then they are those of the next one. Its dP and, if it is
    /// plain, the next scores are made under its exponentials.
    template <bool plain, bool has_next>
    OCTAVO_DEVICE void add_tile(int t, int last_beginning, ring_place<loop::stages>& now, float (&s)[columns]) {
      const ring_place<loop::stages> at = now;
      now.advance();
      const loop_stage& from = this->memory.ring_of[at.stage];
      float dp[columns], p[columns];
      const float k_scale = this->tile_scale(from.k_scale), v_scale = this->tile_scale(from.v_scale);
      float factor[2] = {at_least_tiny(this->q_scale[0] * k_scale), at_least_tiny(this->q_scale[1] * k_scale)};
      this->start_dp(at.stage, dp);
      scale_keys<loop::folds>(s, from.k_scale, this->place.quad_lane);
      if constexpr (!plain) cap_scores(s, factor, this->map);
      round_large(s, factor, m);
      OCTAVO_UNROLL
      for (int i = 0; i < columns; ++i) p[i] = fmaf(s[i], factor[row_half(i)], -m[row_half(i)]);
      const auto start_next = [&] {
        now.wait_full(this->memory.tiles);
        this->start_scores(now.stage, s);
      };
      if constexpr (plain && has_next) start_next();
      OCTAVO_UNROLL
      for (int i = 0; i < columns; ++i) p[i] = functions::exp2(p[i]);
      // The assembler would bring the wait forward, to where no exponential has been started, but for this branch.
      if (!holds_tile(this->seen_by_all, t)) forbid(p, 0.0f, this->keys, t * tile_tokens, this->place.quad_lane);

      finish_product<(plain && has_next ? 1 : 0)>(dp);
      this->finish_dp(from, dp);
      if constexpr (!plain) this->drop_unweighted(from, p, dp);
      at.release(this->memory.tiles, this->place.lane);
      const float dp_factor[2] = {this->do_scale[0] * v_scale, this->do_scale[1] * v_scale};
      if constexpr (!plain)
        if (may_begin_rows(t, last_beginning)) find_shift(dp, dp_factor, t);
      OCTAVO_UNROLL
      for (int i = 0; i < columns; ++i) {
        n[row_half(i)] += p[i];
        sum[row_half(i)] = fmaf(p[i], fmaf(dp[i], dp_factor[row_half(i)], -c[row_half(i)]), sum[row_half(i)]);
      }
      if constexpr (!plain && has_next) start_next();
      if constexpr (has_next) finish_product<0>(s);
    }
    /// c of rows whose first key lies in tile t: the mean of dP over the row's keys in it.
    OCTAVO_DEVICE void find_shift(const float (&dp)[columns], const float (&dp_factor)[2], int t) {
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const row_keys& mine = this->keys[half];
        const int first_key = t * tile_tokens, last_key = first_key + tile_tokens;
        float total = 0;
        OCTAVO_UNROLL
        for (int i = 0; i < columns; ++i)
          if (row_half(i) == half && mine.allows(first_key + column(i, this->place.quad_lane))) total += dp[i];
        total = sum_over_quad(total);
        const int last = mine.last < last_key ? mine.last : last_key;
        if (mine.first >= first_key && mine.first < last)
          c[half] = total * dp_factor[half] / static_cast<float>(last - mine.first);
      }
    }

    OCTAVO_DEVICE void finish() const {
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float keys = sum_over_quad(n[half]), over_keys = sum_over_quad(sum[half]);
        if (!this->exists(half) || this->place.quad_lane != 0) continue;
        const std::int64_t row = this->statistic(half);
        // The sink is one more column with dP = 0.
        const float sink =
            sink_weight<functions>(this->forward().sink_log2(this->work.document, this->work.head, row), m[half]);
        this->kernel.sums.n[row] = keys + sink;
        this->kernel.sums.sum[row] = over_keys - weighted(sink, c[half]);
        if (this->kernel.shift != nullptr) this->kernel.shift[row] = c[half];
      }
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
