// SPDX-License-Identifier: Apache-2.0
// What the delta pass and the kernel of dQ share: a block takes 128 query rows of one head and walks over their keys step
// by step with S = Q K^T and dP = dO V^T.
#pragma once

#include <octavo/algorithm/delta_pass.hpp>
#include <octavo/backends/simt/owned_rows.hpp>
#include <octavo/backends/simt/row_term_tile.hpp>
#include <octavo/backends/simt/scores.hpp>
#include <octavo/backends/simt/stage_copy.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// What a block of a row loop reads.
template <class Recipe>
struct row_loop_data {
  backward_data<Recipe> backward;
  image_operand q, k, v, dout;
};

template <class M, class Recipe, int D, work which, bool with_v_fold = false>
struct row_loop {
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  using score_atom = typename M::template atom<E, E>;
  using dp_atom = typename M::template atom<G, E>;
  static constexpr schedule plan = M::plan(which, D, Recipe::scale_per);
  static constexpr int step = plan.step, stages = plan.stages, row_tiles = plan.row_tiles;
  static constexpr bool folds = folds_token_scales<Recipe>, scaled = scales_in_atom<Recipe>;
  static constexpr bool with_k_columns = which == work::dq, with_terms = which == work::dq;
  static constexpr int threads = tile_tokens / (row_tiles * score_atom::size) * M::lanes;
  static constexpr int blocks_per_sm = plan.blocks_per_sm;
  static constexpr int factors = step_factors<Recipe, step>, factor_bytes = step_factor_bytes<Recipe, step>;
  static constexpr int operand_bytes = image_bytes<M, scaled>(step, D);
  static constexpr int k_columns_bytes = with_k_columns ? operand_bytes : 0, v_fold_bytes = with_v_fold ? step * 4 : 0;

  using scores = sums_of<M, row_tiles, step>;
  using place_type = lane_place<M, row_tiles>;
  using owned = owned_rows<M, scaled, row_tiles, D, threads, plan.own(scaled)>;

  struct stage {
    alignas(16) std::uint8_t k[operand_bytes], v[operand_bytes];
    alignas(16) std::uint8_t k_columns[with_k_columns ? k_columns_bytes : 16];
    float k_scale[factors], v_scale[factors];
    float v_fold[with_v_fold ? step : 4];
    std::uint32_t nonfinite[4];
  };
  struct shared {
    typename owned::storage q, dout;
    stage ring[stages];
    // Of the rows. Registers are short, and a step reads each once.
    row_keys keys[tile_tokens];
    float q_scale[tile_tokens];   ///< with all that makes a product of Q and K payloads a score but K's scale
    float do_scale[tile_tokens];  ///< the same for dP
    alignas(16) char terms[with_terms ? sizeof(row_term_tile) : 16];
    float sum[with_terms ? tile_tokens : 1], magnitude[with_terms ? tile_tokens : 1];

    OCTAVO_DEVICE const row_term_tile& row_terms() const { return *reinterpret_cast<const row_term_tile*>(terms); }
  };
  static constexpr int shared_bytes = sizeof(shared);
  using copies = stage_copy<M, threads, operand_bytes, operand_bytes, k_columns_bytes, factor_bytes, factor_bytes,
                            v_fold_bytes, 16>;

  /// Makes a Kernel::consumer of every thread, calls its visit(u, stage) for the steps that its warp sees, and its finish().
  template <class Kernel>
  OCTAVO_DEVICE static void run(const Kernel& kernel) {
    const row_loop_data<Recipe>& d = kernel.data;
    // Heads one after another, the longest rows of a causal mask first.
    const std::int64_t slots = d.q.slots, slot = slots - 1 - M::block_index() % slots, h = M::block_index() / slots;
    const token_tile tile = d.backward.forward.q_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    typename Kernel::consumer rows(kernel, *reinterpret_cast<shared*>(M::shared()), tile, h, slot);
    rows.walk();
  }

  /// What a lane knows of its rows. Consumer: the class that inherits it.
  template <class Kernel, class Consumer>
  class rows_of_warp {
   public:
    OCTAVO_DEVICE rows_of_warp(const Kernel& of, shared& in, const token_tile& t, std::int64_t h, std::int64_t slot)
        : kernel(of),
          memory(in),
          tile(t),
          at(forward().head(t.document, h)),
          ranges(forward().ranges(at)),
          kv_tile(
              of.data.k.tile(at.h_kv, at.kv.length == 0 ? 0 : forward().kv_docs.first_slot(t.document, tile_tokens))),
          q_tile(of.data.q.tile(h, slot)),
          place(place_type::here()),
          rows_nonfinite(any_bit(of.data.dout.images.nonfinite + q_tile * 4)) {}

    OCTAVO_DEVICE void walk() {
      auto& me = static_cast<Consumer&>(*this);
      const tile_run all = visible_tiles::of(ranges, tile.first, tile.tokens, false, step).any;
      // Asked of the tile, not of `rows`: ptxas 13.0 makes "cut to 0...n, then equal to n?" one VIMNMX.RELU, whose answer
      // on an H200 is yes also where it is no.
      const bool all_rows = place.first_row + place.warp_rows <= tile.tokens;
      const int left = tile.tokens - place.first_row, rows = all_rows ? place.warp_rows : left < 0 ? 0 : left;
      const visible_tiles mine = visible_tiles::of(ranges, tile.first + place.first_row, rows, all_rows, step);
      for (int row = M::thread_index(); row < tile_tokens; row += threads) {
        memory.keys[row] = row_keys::of(ranges, tile.first + row);
        memory.q_scale[row] = scale_of(kernel.data.q, row) * (forward().scale * log2_e) * score_atom::unit;
        memory.do_scale[row] = scale_of(kernel.data.dout, row) * dp_atom::unit;
        if constexpr (with_terms) memory.sum[row] = memory.magnitude[row] = 0;
      }
      last_beginning = rows == 0 ? 0 : row_keys::of(ranges, tile.first + place.first_row + rows - 1).first;
      const std::int64_t bytes = q_tile * image_bytes<M, scaled>(tile_tokens, D);
      queries.template fetch<score_atom>(memory.q, kernel.data.q.images.rows + bytes, place);
      gradients.template fetch<dp_atom>(memory.dout, kernel.data.dout.images.rows + bytes, place);
      if constexpr (with_terms) {
        using copy = stage_copy<M, threads, int{sizeof(row_term_tile)}>;
        typename copy::transfer of_terms;
        copy::start(of_terms, copy_pair{memory.terms, kernel.terms + q_tile});
        of_terms.deliver();
      }
      OCTAVO_UNROLL
      for (int s = 0; s < stages - 1; ++s) {
        typename copies::transfer ahead;
        if (all.first + s < all.last) start_step(ahead, all.first + s, s);
        ahead.deliver();
      }
      int slot = 0;
      OCTAVO_NO_UNROLL
      for (int u = all.first; u < all.last; ++u) {
        M::template wait_transfers<stages - 2>();
        M::sync_block();
        typename copies::transfer ahead;
        if (u + stages - 1 < all.last) start_step(ahead, u + stages - 1, slot == 0 ? stages - 1 : slot - 1);
        if (mine.any.holds(u)) me.visit(u, memory.ring[slot], mine.whole.holds(u));
        ahead.deliver();
        slot = slot + 1 == stages ? 0 : slot + 1;
      }
      M::template wait_transfers<0>();
      M::sync_block();
      me.finish();
    }

   protected:
    const Kernel& kernel;
    shared& memory;
    const token_tile& tile;
    const head_of_document at;
    const key_ranges ranges;
    const std::int64_t kv_tile, q_tile;  ///< the first key tile's image, and the rows' own
    const place_type place;
    owned queries{}, gradients{};
    const std::uint32_t rows_nonfinite;
    int last_beginning = 0;  ///< first key of the warp's last row

    OCTAVO_DEVICE const pass_data<Recipe>& forward() const { return kernel.data.backward.forward; }
    OCTAVO_DEVICE bool exists(int r) const { return place.row(r) < tile.tokens; }
    /// Where a row's statistics stand.
    OCTAVO_DEVICE std::int64_t statistic(int r) const {
      return forward().statistic(at.document, at.h_q, tile.first + place.row(r));
    }
    OCTAVO_DEVICE float scale_of(const image_operand& x, int row) const {
      return x.template scale_of<Recipe>(q_tile, row);
    }
    /// The value of the lane's r-th row: of all rows, where a tile has one scale.
    OCTAVO_DEVICE float of_row(const float (&x)[tile_tokens], int r) const { return x[folds ? place.row(r) : 0]; }

    /// Raw products to scores, s[i] * factor[row].
    OCTAVO_DEVICE void make_scores(const stage& from, float (&s)[scores::elements],
                                   float (&factor)[scores::rows]) const {
      multiply_rows<M, scaled, score_atom, scores, D>(s, queries, from.k, place.lane);
      const float k_scale = tile_scale<Recipe>(from.k_scale);
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) factor[r] = at_least_tiny(of_row(memory.q_scale, r) * k_scale);
      finish_scores<M, scores, folds>(s, factor, from.k_scale + place.column, soft_scale::of(forward()));
    }
    /// dP is dp[i] * factor[row].
    OCTAVO_DEVICE void make_dp(const stage& from, float (&dp)[scores::elements], float (&factor)[scores::rows]) const {
      multiply_rows<M, scaled, dp_atom, scores, D>(dp, gradients, from.v, place.lane);
      if constexpr (folds) {
        const float* of_lane = from.v_scale + place.column;
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i) dp[i] *= of_lane[scores::column(i)];
      }
      const float v_scale = tile_scale<Recipe>(from.v_scale);
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) factor[r] = of_row(memory.do_scale, r) * v_scale;
    }
    OCTAVO_DEVICE void forbid_pairs(float (&x)[scores::elements], float value, int u) const {
      forbid<scores>(x, value, memory.keys, place, u * step + place.column);
    }

   private:
    OCTAVO_DEVICE void start_step(typename copies::transfer& t, int u, int slot) const {
      const row_loop_data<Recipe>& d = kernel.data;
      stage& to = memory.ring[slot];
      const step_of_tokens<M, Recipe, step> at_u(kv_tile, u);
      copies::start(t, copy_pair{to.k, at_u.in_image(d.k.images.rows, D)},
                    copy_pair{to.v, at_u.in_image(d.v.images.rows, D)},
                    copy_pair{to.k_columns, at_u.in_image(d.k.images.columns, D)},
                    copy_pair{to.k_scale, at_u.in_factors(d.k.scale)},
                    copy_pair{to.v_scale, at_u.in_factors(d.v.scale)}, copy_pair{to.v_fold, at_u.in_factors(d.v.fold)},
                    copy_pair{to.nonfinite, at_u.in_marks(d.v.images.nonfinite)});
    }
  };
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
