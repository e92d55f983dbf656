// SPDX-License-Identifier: Apache-2.0
// What the delta pass and the kernel of dQ share: a block takes 128 query rows of one head, and then the next ones that it
// draws, and walks over their key tiles with S = Q K^T and dP = dO V^T, 64 rows a warpgroup; another warpgroup's first
// thread brings the tiles.
#pragma once

#include <octavo/backends/cuda/common/block_passes.hpp>
#include <octavo/backends/cuda/common/tile_work.hpp>
#include <octavo/backends/cuda/hopper/scores.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe>
using row_data = row_loop_data<Recipe, image_operand>;

/// for_dq: with what dQ needs beside S and dP, keys by columns and the terms of its rows.
template <class Recipe, int D, bool for_dq, bool with_v_fold = false>
struct row_loop {
  static constexpr bool folds = folds_token_scales<Recipe>;
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : for_dq ? 3 : 4;
  static constexpr int places = 2;  ///< for tiles of rows

  struct stage {
    alignas(matrix_bytes) std::uint8_t k[tile_tokens * D], v[tile_tokens * D], k_columns[for_dq ? tile_tokens * D : 16];
    float k_scale[scales_per_tile<Recipe>], v_scale[scales_per_tile<Recipe>];
    float v_fold[with_v_fold ? tile_tokens : 4];
    std::uint32_t nonfinite[4];
  };
  struct nothing {};
  /// A tile of rows.
  struct rows_of_tile {
    alignas(matrix_bytes) std::uint8_t q[tile_tokens * D], dout[tile_tokens * D];
    float q_scale[scales_per_tile<Recipe>], do_scale[scales_per_tile<Recipe>];
    std::uint32_t nonfinite[4];  ///< of dO
    std::conditional_t<for_dq, row_term_tile, nothing> terms;
  };
  struct shared {
    rows_of_tile rows[places];
    stage ring_of[stages];
    drawn_tiles<places> drawn;
    ring<stages> tiles;
  };
  static constexpr int shared_bytes = sizeof(shared);

  /// Makes a Kernel::consumer on each reading warpgroup for every tile that the block draws, and calls its run; copies on
  /// the other warpgroup.
  template <class Kernel>
  OCTAVO_DEVICE static void run(const Kernel& kernel) {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    if (ptx::thread_index() == 0) {
      memory.drawn.at.init(readers * 4);
      memory.tiles.init(readers * 4);
      ptx::fence_barriers();
    }
    ptx::sync_block();
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<24>();
      if (ptx::thread_index() == 0) copy_tiles(kernel, memory);
    } else {
      ptx::raise_registers<240>();
      const lane_place lane = lane_place::here();
      ring_place<stages> now;
      memory.drawn.visit_all([&](const tile_work& work, const ring_place<places>& drawn) {
        typename Kernel::consumer{{kernel, memory, work, memory.rows[drawn.stage], lane}}.run(now);
        drawn.release(memory.drawn.at, lane.lane);
      });
    }
  }

  template <class Kernel>
  OCTAVO_DEVICE static void copy_tiles(const Kernel& kernel, shared& memory) {
    constexpr int factors = scales_per_tile<Recipe>;
    const row_data<Recipe>& d = kernel.data;
    ring_place<stages> place;
    memory.drawn.draw_all(
        kernel.list,
        [&](const tile_work& work, int stage, ptx::shared_barrier& full) {
          const std::int64_t from = work.image;
          rows_of_tile& to = memory.rows[stage];
          full.arrive_expecting(memory.drawn.expected + sizeof to.q + sizeof to.dout + sizeof to.q_scale +
                                sizeof to.do_scale + sizeof to.nonfinite + (for_dq ? sizeof to.terms : 0));
          ptx::bulk_load(to.q, d.q.images.rows + from * sizeof to.q, sizeof to.q, full);
          ptx::bulk_load(to.dout, d.dout.images.rows + from * sizeof to.dout, sizeof to.dout, full);
          ptx::bulk_load(to.q_scale, d.q.scale + from * factors, sizeof to.q_scale, full);
          ptx::bulk_load(to.do_scale, d.dout.scale + from * factors, sizeof to.do_scale, full);
          ptx::bulk_load(to.nonfinite, d.dout.images.nonfinite + from * 4, sizeof to.nonfinite, full);
          if constexpr (for_dq) ptx::bulk_load(&to.terms, kernel.terms + from, sizeof to.terms, full);
        },
        [&](const tile_work& work) {
          OCTAVO_NO_UNROLL
          for (int t = work.seen.first; t < work.seen.last; ++t, place.advance())
            start_keys(d, memory, std::int64_t{work.first_seen} + t, place);
        });
  }
  OCTAVO_DEVICE static void start_keys(const row_data<Recipe>& d, shared& memory, std::int64_t from,
                                       const ring_place<stages>& place) {
    constexpr int factors = scales_per_tile<Recipe>;
    stage& to = memory.ring_of[place.stage];
    place.wait_empty(memory.tiles);
    ptx::shared_barrier& full = memory.tiles.full[place.stage];
    full.arrive_expecting(sizeof to.k + sizeof to.v + sizeof to.nonfinite + sizeof to.k_scale + sizeof to.v_scale +
                          (for_dq ? sizeof to.k_columns : 0) + (with_v_fold ? sizeof to.v_fold : 0));
    ptx::bulk_load(to.k, d.k.images.rows + from * sizeof to.k, sizeof to.k, full);
    ptx::bulk_load(to.v, d.v.images.rows + from * sizeof to.v, sizeof to.v, full);
    ptx::bulk_load(to.nonfinite, d.v.images.nonfinite + from * 4, sizeof to.nonfinite, full);
    if constexpr (for_dq)
      ptx::bulk_load(to.k_columns, d.k.images.columns + from * sizeof to.k_columns, sizeof to.k_columns, full);
    ptx::bulk_load(to.k_scale, d.k.scale + from * factors, sizeof to.k_scale, full);
    ptx::bulk_load(to.v_scale, d.v.scale + from * factors, sizeof to.v_scale, full);
    if constexpr (with_v_fold) ptx::bulk_load(to.v_fold, d.v.fold + from * tile_tokens, sizeof to.v_fold, full);
  }

  /// What a warpgroup knows of its 64 rows; the consumers of the kernels are made from it.
  template <class Kernel>
  struct rows_of_group {
    const Kernel& kernel;
    shared& memory;
    const tile_work& work;
    const rows_of_tile& of_tile;
    const lane_place& place;

    int first_row = 64 * (place.group - 1);  ///< of the group within the tile
    ptx::matrix queries = ptx::matrix::at(of_tile.q + first_row * chunk_bytes, tile_tokens);
    ptx::matrix gradients = ptx::matrix::at(of_tile.dout + first_row * chunk_bytes, tile_tokens);
    ptx::matrix first_keys = ptx::matrix::at(memory.ring_of[0].k, tile_tokens);  ///< of the first stage
    ptx::matrix first_values = ptx::matrix::at(memory.ring_of[0].v, tile_tokens);
    tile_run seen = work.seen;
    row_keys seen_by_all = work.seen_by_all[place.group - 1];
    row_keys keys[2] = {work.sees(row(0)), work.sees(row(1))};
    score_map<functions> map = score_map<functions>::of(forward().scale, forward().problem.softcap);
    float q_scale[2] = {map.scale_log2 * scale_of(of_tile.q_scale, 0), map.scale_log2* scale_of(of_tile.q_scale, 1)};
    std::uint32_t rows_nonfinite = any_bit(of_tile.nonfinite);
    float do_scale[2] = {scale_of(of_tile.do_scale, 0), scale_of(of_tile.do_scale, 1)};

    OCTAVO_DEVICE const pass_data<Recipe>& forward() const { return kernel.data.backward.forward; }
    OCTAVO_DEVICE int in_tile(int half) const { return first_row + place.row + 8 * half; }
    OCTAVO_DEVICE int row(int half) const { return work.first + in_tile(half); }  ///< in the document
    OCTAVO_DEVICE bool exists(int half) const { return in_tile(half) < work.tokens; }
    /// Where a row's statistics stand.
    OCTAVO_DEVICE std::int64_t statistic(int half) const {
      return forward().statistic(work.document, work.head, row(half));
    }
    OCTAVO_DEVICE float scale_of(const float* scales, int half) const { return scales[folds ? in_tile(half) : 0]; }
    /// The scale of a stage's K or V; 1 for `token`, which multiplies by each key's own.
    OCTAVO_DEVICE static float tile_scale(const float* scales) { return folds ? 1.0f : scales[0]; }

    OCTAVO_DEVICE void start_scores(int stage, float (&s)[tile_tokens / 2]) const {
      start_product<D>(s, queries, first_keys.behind(stage, sizeof(row_loop::stage)));
    }
    OCTAVO_DEVICE void start_dp(int stage, float (&dp)[tile_tokens / 2]) const {
      start_product<D>(dp, gradients, first_values.behind(stage, sizeof(row_loop::stage)));
    }
    /// `token`: the scales of the values that dP is made of. dp * factor is then dP.
    OCTAVO_DEVICE void finish_dp(const stage& from, float (&dp)[tile_tokens / 2]) const {
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < tile_tokens / 2; ++i) dp[i] *= from.v_scale[column(i, place.quad_lane)];
      }
    }
    /// Where V or dO hold a NaN or numbers so large that dP may overflow, it must not reach pairs without weight.
    OCTAVO_DEVICE void drop_unweighted(const stage& from, const float (&weight)[tile_tokens / 2],
                                       float (&dp)[tile_tokens / 2]) const {
      if ((rows_nonfinite | any_bit(from.nonfinite)) == 0) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int i = 0; i < tile_tokens / 2; ++i)
        if (weight[i] == 0) dp[i] = 0;
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
