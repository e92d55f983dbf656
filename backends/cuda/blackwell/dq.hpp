// SPDX-License-Identifier: Apache-2.0
// dQ on Blackwell, by blocks that own its rows: no reduction between blocks, the same bits in every run.
//
//     P = 2^(s - exponent)     dS = P ((dP - c) - (delta - c))     dQ += quant(dS) K     dS per query and 32 keys
//
// A thread owns a row, so dS is quantised along keys without a word to other threads. Its scales reach tensor memory
// through shared memory and tcgen05.cp.
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/backends/cuda/blackwell/gradients.hpp>
#include <octavo/backends/cuda/blackwell/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

template <class Recipe, class Delta, int D>
struct dq_kernel {
  static constexpr const char* name = "blackwell dQ";
  using G = typename Recipe::gradient_element;
  using loop = row_loop<Recipe, D, true>;
  static constexpr int threads = loop::threads, shared_bytes = loop::shared_bytes, blocks_per_sm = loop::blocks_per_sm;

  row_data<Recipe> data;
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

  struct row : loop::template row_of_group<dq_kernel> {
    /// The row's terms, the same for all keys.
    struct row_terms_of_keys {
      float exponent_, weight_, shift_, delta_;
      row_keys keys;
      int first;  ///< key of element 0
      OCTAVO_DEVICE float exponent(int) const { return exponent_; }
      OCTAVO_DEVICE float weight(int) const { return weight_; }
      OCTAVO_DEVICE float shift(int) const { return shift_; }
      OCTAVO_DEVICE float delta(int) const { return delta_; }
      OCTAVO_DEVICE bool allowed(int i) const { return keys.allows(first + i); }
    };

    OCTAVO_DEVICE void run() {
      const row_term_tile& of_tile = this->kernel.terms[this->q_tile];
      const int i = this->place.row;
      row_terms_of_keys terms{of_tile.exponent[i], of_tile.weight[i], of_tile.shift[i],
                              of_tile.delta[i],    this->keys,        0};
      pair_conditions conditions;
      conditions.special = any_bit(of_tile.special) != 0;
      const bool rows_strange = any_bit(of_tile.nonfinite) != 0;
      const bool wants_sums =
          this->kernel.row_sum != nullptr || this->kernel.l1 != nullptr || this->kernel.key_shift != nullptr;
      float sum = 0, magnitude = 0;
      this->visit_all([&](float(&s)[half_tokens], float(&dp)[half_tokens], int t, bool strange) {
        terms.first = this->first_key(t);
        conditions.masked = !this->tiles.whole.holds(t);
        conditions.strange = strange || rows_strange;
        if (wants_sums) [[unlikely]] {
          make_gradients<Recipe, Delta>(s, dp, this->map, terms, conditions, [&](float ds) {
            sum += ds;
            magnitude += fabsf(ds);
          });
        } else {
          make_gradients<Recipe, Delta>(s, dp, this->map, terms, conditions, [](float) {});
        }
        this->leave_gradients(t, [&] { store(dp); });
      });
      finish(sum, magnitude);
    }

   private:
    OCTAVO_DEVICE void store(const float (&ds)[half_tokens]) const {
      std::uint32_t packed[half_tokens / 4], scales = 0;
      OCTAVO_UNROLL
      for (int b = 0; b < half_tokens / mx_block; ++b)
        scales |= quantise_block<G>(ds, b * mx_block, packed, b * block_columns) << 8 * b;
      ptx::tcgen05_store(this->columns(loop::ds_column(this->place.group)), packed);
      store_scales(this->memory.ds_scales[this->place.group], this->place.row, scales);
      ptx::fence_async();
      ptx::tcgen05_wait_stores();
    }

    OCTAVO_DEVICE void finish(float sum, float magnitude) const {
      const pass_data<Recipe>& d = this->forward();
      this->publish(0, sum);
      this->publish(1, magnitude);
      this->sync_rows();
      sum = this->part(0, 0) + this->part(1, 0);
      magnitude = this->part(0, 1) + this->part(1, 1);
      if (this->exists && this->place.group == 0) {
        const std::int64_t row = this->statistic();
        if (this->kernel.row_sum != nullptr)
          this->kernel.row_sum[row] =
              sum + sink_gradient<functions>(this->kernel.data.backward, this->at.document, this->at.h_q, row);
        if (this->kernel.l1 != nullptr) this->kernel.l1[row] = magnitude;
      }
      // k_j = centred k_j + u: where the rows of dS sum to zero u drops out, else it does not.
      const float* u = this->kernel.key_shift;
      if (u != nullptr && !d.q_docs.is_tail(this->tile.document))
        u += (this->tile.document * d.problem.h_kv + this->at.h_kv) * D;
      else
        u = nullptr;
      const bool any = this->tiles.any.last > this->tiles.any.first;
      if (any) wait_for(this->memory.summed, 0);
      const tensor& to = this->kernel.dq;
      OCTAVO_NO_UNROLL
      for (int first = D / row_groups * this->place.group; first < D / row_groups * (this->place.group + 1);
           first += 32) {
        float x[32] = {};
        if (any) {
          ptx::tcgen05_load(x, this->columns(loop::dq_column + first));
          ptx::tcgen05_wait_loads(x);
        }
        if (u != nullptr) {
          OCTAVO_UNROLL
          for (int c = 0; c < 32; ++c) x[c] = fmaf(u[first + c], sum, x[c]);
        }
        OCTAVO_UNROLL
        for (float& y : x) y *= d.scale;
        if (this->exists)
          write_row(
              to,
              element_offset(to, d.q_docs, this->tile.document, this->tile.first + this->place.row, this->at.h_q) +
                  first,
              x);
      }
    }
  };
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
