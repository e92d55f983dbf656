// SPDX-License-Identifier: Apache-2.0
// The sums of the matched delta on lanes, n_i and sum_i of algorithm/delta_pass.hpp: S and dP once more, no O.
#pragma once

#include <octavo/backends/simt/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, int D>
struct delta_sums_kernel {
  using machine = M;
  static constexpr const char* name = "simt delta pass";
  using loop = row_loop<M, Recipe, D, work::delta_sums>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;

  row_loop_data<Recipe> data;
  const float* given_shift = nullptr;  ///< c from the caller, or null
  delta_outputs sums;                  ///< n and sum, the sink's term included
  float* shift = nullptr;              ///< c that was used, or null

  std::int64_t blocks() const {
    const pass_data<Recipe>& d = data.backward.forward;
    return d.q_docs.slots(tile_tokens) * d.problem.h_q;
  }
  OCTAVO_DEVICE void operator()() const { loop::run(*this); }

  class consumer : public loop::template rows_of_warp<delta_sums_kernel, consumer> {
    using base = typename loop::template rows_of_warp<delta_sums_kernel, consumer>;
    using scores = typename loop::scores;

   public:
    OCTAVO_DEVICE consumer(const delta_sums_kernel& of, typename loop::shared& in, const token_tile& t, std::int64_t h,
                           std::int64_t slot)
        : base(of, in, t, h, slot) {
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        m[r] = this->exists(r) ? of.data.backward.m[this->statistic(r)] : 0.0f;
        c[r] = of.given_shift != nullptr && this->exists(r) ? of.given_shift[this->statistic(r)] : 0.0f;
      }
    }

    OCTAVO_DEVICE void visit(int u, const typename loop::stage& from, bool whole) {
      float s[scores::elements], dp[scores::elements], factor[scores::rows], dp_factor[scores::rows];
      this->make_scores(from, s, factor);
      round_large<M, scores>(s, factor, m);
      OCTAVO_UNROLL
      for (int i = 0; i < scores::elements; ++i) {
        const int r = scores::row(i);
        s[i] = M::exp2(fmaf(s[i], factor[r], -m[r]));
      }
      if (!whole) [[unlikely]]
        this->forbid_pairs(s, 0.0f, u);
      this->make_dp(from, dp, dp_factor);
      // Where V or dO hold a NaN or numbers so large that dP may overflow, it must not reach pairs without weight.
      if ((this->rows_nonfinite | any_bit(from.nonfinite)) != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i)
          if (s[i] == 0) dp[i] = 0;
      }
      // Rows begin in order: once the last one has, there is no c left to find.
      if (this->kernel.given_shift == nullptr && u * loop::step <= this->last_beginning) find_shift(dp, dp_factor, u);
      OCTAVO_UNROLL
      for (int i = 0; i < scores::elements; ++i) {
        const int r = scores::row(i);
        n[r] += s[i];
        sum[r] = fmaf(s[i], fmaf(dp[i], dp_factor[r], -c[r]), sum[r]);
      }
    }

    OCTAVO_DEVICE void finish() {
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        const float keys = sum_over_row<M>(n[r]), over_keys = sum_over_row<M>(sum[r]);
        if (!this->exists(r) || !this->place.leads_row()) continue;
        const std::int64_t row = this->statistic(r);
        // The sink is one more column with dP = 0.
        const float sink =
            sink_weight<functions<M>>(this->forward().sink_log2(this->at.document, this->at.h_q, row), m[r]);
        this->kernel.sums.n[row] = keys + sink;
        this->kernel.sums.sum[row] = over_keys - weighted(sink, c[r]);
        if (this->kernel.shift != nullptr) this->kernel.shift[row] = c[r];
      }
    }

   private:
    float m[scores::rows], c[scores::rows], n[scores::rows] = {}, sum[scores::rows] = {};

    /// c of rows whose first key lies in step u: the mean of dP over the row's keys in it.
    OCTAVO_DEVICE void find_shift(const float (&dp)[scores::elements], const float (&dp_factor)[scores::rows], int u) {
      const int first_key = u * loop::step, last_key = first_key + loop::step;
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        const row_keys mine = this->memory.keys[this->place.row(r)];
        float total = 0;
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i)
          if (scores::row(i) == r && mine.allows(first_key + this->place.column + scores::column(i))) total += dp[i];
        total = sum_over_row<M>(total);
        const int last = mine.last < last_key ? mine.last : last_key;
        if (mine.first >= first_key && mine.first < last)
          c[r] = total * dp_factor[r] / static_cast<float>(last - mine.first);
      }
    }
  };
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
