// SPDX-License-Identifier: Apache-2.0
// What the delta pass and the kernel of dQ share: a block takes 128 query rows of one head and walks over their key
// tiles with S = Q K^T and dP = dO V^T, 64 rows a warpgroup; another warpgroup's first thread brings the tiles.
#pragma once

#include <octavo/backends/cuda/common/block_passes.hpp>
#include <octavo/backends/cuda/common/ring.hpp>
#include <octavo/backends/cuda/hopper/scores.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe>
using row_data = row_loop_data<Recipe, image_operand>;

template <class Recipe, int D, bool with_k_columns, bool with_v_fold = false>
struct row_loop {
  static constexpr bool folds = folds_token_scales<Recipe>;
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : with_k_columns ? 3 : 4;

  struct stage {
    std::uint8_t k[tile_tokens * D], v[tile_tokens * D], k_columns[with_k_columns ? tile_tokens * D : 16];
    float k_scale[scales_per_tile<Recipe>], v_scale[scales_per_tile<Recipe>];
    float v_fold[with_v_fold ? tile_tokens : 4];
    std::uint32_t nonfinite[4];
  };
  struct shared {
    std::uint8_t q[tile_tokens * D], dout[tile_tokens * D];
    stage ring_of[stages];
    ring<stages> tiles;
    ptx::shared_barrier queries;
  };
  static constexpr int shared_bytes = sizeof(shared);

  /// Which rows a block takes. Heads one after another, the longest rows of a causal mask first.
  struct block_place {
    std::int64_t h, slot;
    token_tile tile;
  };
  OCTAVO_DEVICE static block_place here(const row_data<Recipe>& d) {
    const std::int64_t slots = d.q.slots, slot = slots - 1 - ptx::block_index() % slots;
    return {ptx::block_index() / slots, slot, d.backward.forward.q_docs.tile_at(slot, tile_tokens)};
  }

  /// Makes a Kernel::consumer on each reading warpgroup and calls its run(all); copies on the other.
  template <class Kernel>
  OCTAVO_DEVICE static void run(const Kernel& kernel) {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    const row_data<Recipe>& d = kernel.data;
    const block_place block = here(d);
    if (block.tile.tokens == 0) return;
    if (ptx::thread_index() == 0) {
      memory.tiles.init(readers * 4);
      memory.queries.init(1);
      ptx::fence_barriers();
    }
    ptx::sync_block();
    const pass_data<Recipe>& forward = d.backward.forward;
    const head_of_document at = forward.head(block.tile.document, block.h);
    const key_ranges ranges = forward.ranges(at);
    const tile_run all = visible_tiles::of(ranges, block.tile.first, block.tile.tokens, false).any;
    const std::int64_t first_kv_slot = at.kv.length == 0 ? 0 : forward.kv_docs.first_slot(at.document, tile_tokens);
    const std::int64_t kv_tile = d.k.tile(at.h_kv, first_kv_slot), q_tile = d.q.tile(block.h, block.slot);
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<24>();
      if (ptx::thread_index() == 0 && all.last > all.first) copy_tiles(d, memory, q_tile, kv_tile, all);
    } else {
      ptx::raise_registers<240>();
      typename Kernel::consumer{{kernel, memory, at, block.tile, ranges, kv_tile, q_tile}}.run(all);
    }
  }

  OCTAVO_DEVICE static void copy_tiles(const row_data<Recipe>& d, shared& memory, std::int64_t q_tile,
                                       std::int64_t kv_tile, tile_run run) {
    memory.queries.arrive_expecting(sizeof memory.q + sizeof memory.dout);
    ptx::bulk_load(memory.q, d.q.images.rows + q_tile * sizeof memory.q, sizeof memory.q, memory.queries);
    ptx::bulk_load(memory.dout, d.dout.images.rows + q_tile * sizeof memory.dout, sizeof memory.dout, memory.queries);
    ring_place<stages> place;
    OCTAVO_NO_UNROLL
    for (int t = run.first; t < run.last; ++t, place.advance()) {
      stage& to = memory.ring_of[place.stage];
      const std::int64_t from = kv_tile + t;
      place.wait_empty(memory.tiles);
      ptx::shared_barrier& full = memory.tiles.full[place.stage];
      full.arrive_expecting(sizeof to.k + sizeof to.v + sizeof to.nonfinite + sizeof to.k_scale + sizeof to.v_scale +
                            (with_k_columns ? sizeof to.k_columns : 0) + (with_v_fold ? sizeof to.v_fold : 0));
      ptx::bulk_load(to.k, d.k.images.rows + from * sizeof to.k, sizeof to.k, full);
      ptx::bulk_load(to.v, d.v.images.rows + from * sizeof to.v, sizeof to.v, full);
      ptx::bulk_load(to.nonfinite, d.v.images.nonfinite + from * 4, sizeof to.nonfinite, full);
      if constexpr (with_k_columns)
        ptx::bulk_load(to.k_columns, d.k.images.columns + from * sizeof to.k_columns, sizeof to.k_columns, full);
      constexpr int factors = scales_per_tile<Recipe>;
      ptx::bulk_load(to.k_scale, d.k.scale + from * factors, sizeof to.k_scale, full);
      ptx::bulk_load(to.v_scale, d.v.scale + from * factors, sizeof to.v_scale, full);
      if constexpr (with_v_fold) ptx::bulk_load(to.v_fold, d.v.fold + from * tile_tokens, sizeof to.v_fold, full);
    }
  }

  /// What a warpgroup knows of its 64 rows; the consumers of the kernels are made from it.
  template <class Kernel>
  struct rows_of_group {
    const Kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& tile;
    const key_ranges& ranges;
    std::int64_t kv_tile, q_tile;  ///< the first key tile's image, and the rows' own

    lane_place place = lane_place::here();
    int first_row = 64 * (place.group - 1);  ///< of the group within the tile
    ptx::matrix queries = ptx::matrix::at(memory.q + first_row * chunk_bytes, tile_tokens);
    ptx::matrix gradients = ptx::matrix::at(memory.dout + first_row * chunk_bytes, tile_tokens);
    ptx::matrix first_keys = ptx::matrix::at(memory.ring_of[0].k, tile_tokens);  ///< of the first stage
    ptx::matrix first_values = ptx::matrix::at(memory.ring_of[0].v, tile_tokens);
    int rows = tile.tokens - first_row < 0 ? 0 : tile.tokens - first_row < 64 ? tile.tokens - first_row : 64;
    visible_tiles mine = visible_tiles::of(ranges, tile.first + first_row, rows, rows == 64);
    row_keys keys[2] = {row_keys::of(ranges, tile.first + first_row + place.row),
                        row_keys::of(ranges, tile.first + first_row + place.row + 8)};
    score_map<functions> map = score_map<functions>::of(forward().scale, forward().problem.softcap);
    float q_scale[2] = {map.scale_log2 * scale_of(kernel.data.q, 0), map.scale_log2* scale_of(kernel.data.q, 1)};
    std::uint32_t rows_nonfinite = any_bit(kernel.data.dout.images.nonfinite + q_tile * 4);
    float do_scale[2] = {scale_of(kernel.data.dout, 0), scale_of(kernel.data.dout, 1)};

    OCTAVO_DEVICE const pass_data<Recipe>& forward() const { return kernel.data.backward.forward; }
    OCTAVO_DEVICE int in_tile(int half) const { return first_row + place.row + 8 * half; }
    OCTAVO_DEVICE bool exists(int half) const { return in_tile(half) < tile.tokens; }
    /// Where a row's statistics stand.
    OCTAVO_DEVICE std::int64_t statistic(int half) const {
      return forward().statistic(at.document, at.h_q, tile.first + in_tile(half));
    }
    OCTAVO_DEVICE float scale_of(const image_operand& x, int half) const {
      return x.scale[q_tile * scales_per_tile<Recipe> + (folds ? in_tile(half) : 0)];
    }
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
    OCTAVO_DEVICE void release(int stage) const {
      ptx::sync_warp();
      if (place.lane == 0) memory.tiles.empty[stage].arrive();
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
