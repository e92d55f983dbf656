// SPDX-License-Identifier: Apache-2.0
// The sums of the matched delta on Blackwell, n_i and sum_i of algorithm/delta_pass.hpp: S and dP once more, no O.
#pragma once

#include <octavo/backends/cuda/blackwell/exponentials.hpp>
#include <octavo/backends/cuda/blackwell/row_loop.hpp>
#include <octavo/backends/cuda/ptx/pairs.hpp>
#include <octavo/backends/simt/probabilities.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// some_by_polynomial: see exponentials.hpp.
template <class Recipe, int D, bool some_by_polynomial>
struct delta_sums_kernel {
  static constexpr const char* name = "blackwell delta pass";
  using loop = row_loop<Recipe, D, false>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;

  row_data<Recipe> data;
  const float* given_shift = nullptr;  ///< c from the caller, or null
  delta_outputs sums;                  ///< n and sum, the sink's term included
  float* shift = nullptr;              ///< c that was used, or null

  /// The same for a device that is not short of EX2.
  delta_sums_kernel<Recipe, D, false> with_special_units() const { return {data, given_shift, sums, shift}; }

  std::int64_t blocks() const {
    const pass_data<Recipe>& d = data.backward.forward;
    return d.q_docs.slots(tile_tokens) * d.problem.h_q;
  }
  OCTAVO_DEVICE void operator()() const { loop::run(*this); }

  struct row : loop::template row_of_group<delta_sums_kernel> {
    OCTAVO_DEVICE void run() {
      const float m = this->exists ? this->kernel.data.backward.m[this->statistic()] : 0.0f;
      const bool given = this->kernel.given_shift != nullptr;
      float c = given && this->exists ? this->kernel.given_shift[this->statistic()] : 0.0f;
      ptx::pair n[2] = {}, sum[2] = {};
      bool begun = given;
      this->visit_all([&](float(&s)[half_tokens], float(&dp)[half_tokens], int t, bool strange) {
        weights(s, m, t);
        if (strange) [[unlikely]] {
          OCTAVO_UNROLL
          for (int j = 0; j < half_tokens; ++j)
            if (s[j] == 0) dp[j] = 0;
        }
        if (!begun) [[unlikely]]
          begun = find_shift(dp, t, c);
        OCTAVO_UNROLL
        for (int j = 0; j < half_tokens; j += 2) {
          const ptx::pair p{s[j], s[j + 1]}, moved = ptx::subtract({dp[j], dp[j + 1]}, ptx::pair::both(c));
          n[j / 2 % 2] = ptx::add(n[j / 2 % 2], p);
          sum[j / 2 % 2] = ptx::multiply_add(p, moved, sum[j / 2 % 2]);
        }
      });
      finish(total(n), total(sum), m, c);
    }

   private:
    OCTAVO_DEVICE static float total(const ptx::pair (&x)[2]) {
      return (x[0].low + x[0].high) + (x[1].low + x[1].high);
    }
    /// 2^(s - M) in the place of raw products.
    OCTAVO_DEVICE void weights(float (&s)[half_tokens], float m, int t) const {
      float factor = this->map.scale_log2;
      if (this->map.softcap != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (float& x : s) x = this->map.capped(x * factor);
        factor = 1;
      }
      const bool large = is_large(m);
      if (large) [[unlikely]] {
        OCTAVO_UNROLL
        for (float& x : s) x = simt::shifted_score<functions>(x, factor, -m, true);
      } else {
        OCTAVO_UNROLL
        for (float& x : s) x = fmaf(x, factor, -m);
      }
      exponentials<some_by_polynomial>(s);
      if (this->tiles.whole.holds(t)) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int j = 0; j < half_tokens; ++j)
        if (!this->keys.allows(this->first_key(t) + j)) s[j] = 0;
    }
    /// c: the mean of dP over the row's keys in the first half of a tile that has any. Whether this is that half.
    OCTAVO_DEVICE bool find_shift(const float (&dp)[half_tokens], int t, float& c) const {
      const int first = this->first_key(t), last = first + half_tokens;
      const int begin = this->keys.first > first ? this->keys.first : first;
      const int end = this->keys.last < last ? this->keys.last : last;
      if (begin >= end) return false;
      float total = 0;
      OCTAVO_UNROLL
      for (int j = 0; j < half_tokens; ++j)
        if (this->keys.allows(first + j)) total += dp[j];
      c = total / static_cast<float>(end - begin);
      return true;
    }
    /// The two halves' sums are relative to shifts of their own.
    OCTAVO_DEVICE void finish(float n, float sum, float m, float c) const {
      this->publish(0, n);
      this->publish(1, sum);
      this->publish(2, c);
      this->sync_rows();
      if (this->place.group != 0 || !this->exists) return;
      const float n_other = this->part(1, 0), sum_other = this->part(1, 1), c_other = this->part(1, 2);
      const bool only_other = n == 0;
      const float shift = only_other ? c_other : c;
      const float moved = only_other ? sum_other : sum_other + weighted(n_other, c_other - shift);
      const std::int64_t row = this->statistic();
      // The sink is one more column with dP = 0.
      const float sink = sink_weight<functions>(this->forward().sink_log2(this->at.document, this->at.h_q, row), m);
      this->kernel.sums.n[row] = n + n_other + sink;
      this->kernel.sums.sum[row] = (only_other ? 0.0f : sum) + moved - weighted(sink, shift);
      if (this->kernel.shift != nullptr) this->kernel.shift[row] = shift;
    }
  };
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
