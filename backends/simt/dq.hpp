// SPDX-License-Identifier: Apache-2.0
// dQ on lanes, by blocks that own its rows: no reduction between blocks, the same bits in every run.
//
//     P = 2^(s - exponent)     dS = P ((dP - c) - (delta - c))     dQ += quant(dS) K     dS per query and step of keys
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/backends/simt/results.hpp>
#include <octavo/backends/simt/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, class Delta, int D>
struct dq_kernel {
  using machine = M;
  static constexpr const char* name = "simt dQ";
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  using atom = typename M::template atom<G, E>;
  /// consistent with `token`: P takes in the scales of V as it did in the forward.
  static constexpr bool with_v_fold = folds_token_scales<Recipe> && Delta::reuses_forward_p;
  using loop = row_loop<M, Recipe, D, work::dq, with_v_fold>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;
  static constexpr bool folds = loop::folds;

  row_loop_data<Recipe> data;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots]
  tensor dq;
  const float* key_shift = nullptr;  ///< u [b, h_kv, d] where keys are centred and rows may keep a sum
  float* row_sum = nullptr;          ///< [b, h_q, s_q] or null
  float* l1 = nullptr;

  std::int64_t blocks() const {
    const pass_data<Recipe>& d = data.backward.forward;
    return d.q_docs.slots(tile_tokens) * d.problem.h_q;
  }
  OCTAVO_DEVICE void operator()() const { loop::run(*this); }

  class consumer : public loop::template rows_of_warp<dq_kernel, consumer> {
    using base = typename loop::template rows_of_warp<dq_kernel, consumer>;
    using loop_stage = typename loop::stage;
    using scores = typename loop::scores;
    using output = sums_of<M, loop::row_tiles, D>;

   public:
    OCTAVO_DEVICE consumer(const dq_kernel& of, typename loop::shared& in, const token_tile& t, std::int64_t h,
                           std::int64_t slot)
        : base(of, in, t, h, slot) {
      const row_term_tile& terms = of.terms[this->q_tile];
      rare = any_bit(terms.nonfinite) | any_bit(terms.special) | this->rows_nonfinite;
    }

    OCTAVO_DEVICE void visit(int u, const loop_stage& from, bool whole) {
      float s[scores::elements], dp[scores::elements], factor[scores::rows], dp_factor[scores::rows];
      this->make_scores(from, s, factor);
      float exponent[scores::rows];
      of_rows(this->memory.row_terms().exponent, exponent);
      round_large<M, scores>(s, factor, exponent);
      if (this->forward().problem.softcap == 0) [[likely]] {
        probabilities_of<scores::elements>(s, 0, factor, exponent, from);
        if (!whole) [[unlikely]]
          this->forbid_pairs(s, 0.0f, u);
      }
      this->make_dp(from, dp, dp_factor);
      make_ds(s, dp, dp_factor, exponent, u, from);
      add_products(dp, from);
    }

    OCTAVO_DEVICE void finish() {
      const pass_data<Recipe>& d = this->forward();
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        if (!this->exists(r) || !this->place.leads_row()) continue;
        const std::int64_t row = this->statistic(r);
        if (this->kernel.row_sum != nullptr)
          this->kernel.row_sum[row] =
              sum_of(r) + sink_gradient<functions<M>>(this->kernel.data.backward, this->at.document, this->at.h_q, row);
        if (this->kernel.l1 != nullptr) this->kernel.l1[row] = this->memory.magnitude[this->place.row(r)];
      }
      // k_j = centred k_j + u: where the rows of dS sum to zero u drops out, else it does not.
      const float* u = this->kernel.key_shift;
      const int channels = static_cast<int>(d.problem.d_qk);
      if (u != nullptr && !d.q_docs.is_tail(this->tile.document)) {
        u += (this->tile.document * d.problem.h_kv + this->at.h_kv) * channels;
        OCTAVO_UNROLL
        for (int i = 0; i < output::elements; ++i) {
          const int channel = this->place.column + output::column(i);
          if (channel < channels) dq[i] = fmaf(u[channel], sum_of(output::row(i)), dq[i]);
        }
      }
      const tensor& to = this->kernel.dq;
      const std::int64_t first = element_offset(to, d.q_docs, this->tile.document, this->tile.first, this->at.h_q);
      const result_writer<M, output> writer(to, first, this->place, this->tile.tokens, channels);
      writer.write([&](int i) { return dq[i] * d.scale; });
    }

   private:
    float sum[scores::rows] = {}, magnitude[scores::rows] = {};
    float dq[output::elements] = {};
    float exponent[scores::rows], shift[scores::rows], delta[scores::rows],
        weight[scores::rows];  ///< see row_term_tile
    std::uint32_t rare;        ///< not 0 where a row has a large M, or something that is not finite

    /// The lane's rows of one of the row terms.
    OCTAVO_DEVICE void of_rows(const float (&terms)[tile_tokens], float (&to)[scores::rows]) const {
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) to[r] = terms[this->place.row(r)];
    }
    OCTAVO_DEVICE float sum_of(int r) const { return this->memory.sum[this->place.row(r)]; }

    /// P of elements [first, first + N) of the fragment.
    template <int N>
    OCTAVO_DEVICE void probabilities_of(float (&x)[N], int first, const float (&factor)[scores::rows],
                                        const float (&exponent)[scores::rows], const loop_stage& from) const {
      float weight[scores::rows] = {};
      if constexpr (Delta::reuses_forward_p) of_rows(this->memory.row_terms().weight, weight);
      probabilities<M, Recipe, Delta>(
          x, false, [&](int i) { return factor[scores::row(first + i)]; },
          [&](int i) { return exponent[scores::row(first + i)]; },
          [&](int i) { return weight[scores::row(first + i)]; }, [&](int i) { return fold(first + i, from); });
      if (Delta::reuses_forward_p || rare == 0) [[likely]]
        return;
      of_rows(this->memory.row_terms().weight, weight);  // 1, or of a row with a large M
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) x[i] *= weight[scores::row(first + i)];
    }
    /// log2 of the scale of V that the forward folded into P.
    OCTAVO_DEVICE float fold(int i, const loop_stage& from) const {
      // The lane's part first, so that columns are constants that an instruction adds, and take no register each.
      if constexpr (with_v_fold)
        return (from.v_fold + this->place.column)[scores::column(i)];
      else
        return 0.0f;
    }

    /// dS in the place of dP.
    OCTAVO_DEVICE void make_ds(const float (&s)[scores::elements], float (&dp)[scores::elements],
                               const float (&dp_factor)[scores::rows], const float (&exponent)[scores::rows], int u,
                               const loop_stage& from) {
      float shift[scores::rows], delta[scores::rows];
      of_rows(this->memory.row_terms().shift, shift);
      of_rows(this->memory.row_terms().delta, delta);
      const bool wants_sums =
          this->kernel.row_sum != nullptr || this->kernel.l1 != nullptr || this->kernel.key_shift != nullptr;
      const auto gradient = [&](float p, float x, int i) {
        const int r = scores::row(i);
        return p * (fmaf(x, dp_factor[r], -shift[r]) - delta[r]);
      };
      if (this->forward().problem.softcap == 0) [[likely]] {
        if ((rare | any_bit(from.nonfinite)) == 0) [[likely]] {
          OCTAVO_UNROLL
          for (int i = 0; i < scores::elements; ++i) dp[i] = gradient(s[i], dp[i], i);
        } else {
          // A pair without weight has no gradient, whatever dP and delta are.
          OCTAVO_UNROLL
          for (int i = 0; i < scores::elements; ++i) dp[i] = s[i] == 0 ? 0.0f : gradient(s[i], dp[i], i);
        }
        if (wants_sums) [[unlikely]]
          add_sums(dp, 0);
        return;
      }
      // s holds scores: their P comes four at a time, so that both need not be kept.
      const score_map<functions<M>> map = soft_scale::of(this->forward()).template map<M>();
      float factor[scores::rows];
      OCTAVO_UNROLL
      for (float& f : factor) f = 1;
      OCTAVO_UNROLL
      for (int first = 0; first < scores::elements; first += 4) {
        float p[4] = {s[first], s[first + 1], s[first + 2], s[first + 3]}, ds[4];
        probabilities_of<4>(p, first, factor, exponent, from);
        OCTAVO_UNROLL
        for (int e = 0; e < 4; ++e) {
          const int i = first + e, key = u * loop::step + this->place.column + scores::column(i);
          const bool seen = this->memory.keys[this->place.row(scores::row(i))].allows(key);
          ds[e] = seen && p[e] != 0 ? gradient(p[e], dp[i], i) : 0.0f;
          dp[i] = weighted(ds[e], map.cap_derivative(s[i]));
        }
        if (wants_sums) add_sums(ds, first);
      }
    }
    /// Elements [first, first + N) of a fragment, to the sums of the rows.
    template <int N>
    OCTAVO_DEVICE void add_sums(const float (&ds)[N], int first) {
      float sum[scores::rows] = {}, magnitude[scores::rows] = {};
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) {
        sum[scores::row(first + i)] += ds[i];
        magnitude[scores::row(first + i)] += fabsf(ds[i]);
      }
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        sum[r] = sum_over_row<M>(sum[r]), magnitude[r] = sum_over_row<M>(magnitude[r]);
        if (!this->place.leads_row()) continue;
        this->memory.sum[this->place.row(r)] += sum[r];
        this->memory.magnitude[this->place.row(r)] += magnitude[r];
      }
    }

    /// dS, rounded with a power of two per row (mx32: and 32 keys), the key scales of `token` folded in before, times K.
    OCTAVO_DEVICE void add_products(float (&ds)[scores::elements], const loop_stage& from) {
      if constexpr (folds) {
        const float* k_scale = from.k_scale + this->place.column;
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i) ds[i] *= k_scale[scores::column(i)];
      }
      packed_rows<M, loop::row_tiles, loop::step, loop::scaled> packed;
      float down[scores::rows];
      packed.template pack_scaled<G>(ds, down, this->place.lane);
      OCTAVO_UNROLL
      for (float& factor : down) factor = factor * tile_scale<Recipe>(from.k_scale) * atom::unit;
      constexpr int part_sums = loop::row_tiles * atom::sums;
      multiply_columns<atom, D, D>(
          packed, from.k_columns, 0, this->place.lane, [&](const float(&part)[part_sums], int c) {
            OCTAVO_UNROLL
            for (int i = 0; i < part_sums; ++i) {
              const int to = (i / atom::sums * output::atoms + c) * atom::sums + i % atom::sums;
              dq[to] = fmaf(part[i], down[output::row(to)], dq[to]);
            }
          });
    }
  };
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
