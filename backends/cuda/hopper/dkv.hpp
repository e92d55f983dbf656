// SPDX-License-Identifier: Apache-2.0
// dK and dV on Hopper: a block takes 128 keys of one head, 64 a warpgroup, and walks over the query tiles that see them,
// for every query head of their group, 64 queries at a time:
//
//     S^T = K Q^T     dP^T = V dO^T     P^T = 2^(s - exponent)     dS^T = P^T ((dP - c) - (delta - c))
//     dV += quant(P^T) dO               dK += quant(dS^T) Q        quantised per key and 64 queries
//
// The transposed scores have keys in rows, so that P^T and dS^T go from registers into the second products as they are,
// and dK and dV stay in registers for the whole walk: grouped heads need no reduction, and no order is left to chance.
#pragma once

#include <octavo/backends/cuda/hopper/nonfinite.hpp>
#include <octavo/backends/cuda/hopper/pipeline.hpp>
#include <octavo/backends/cuda/hopper/probabilities.hpp>
#include <octavo/backends/cuda/hopper/row_terms.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe, class Delta, int D>
struct dkv_kernel {
  static constexpr const char* name = "hopper dK dV";
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  static constexpr bool folds = folds_token_scales<Recipe>;
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : 2;
  static constexpr int step = 64;            ///< queries of a fragment
  static constexpr int elements = step / 2;  ///< of a thread in it

  struct stage {
    std::uint8_t q[tile_tokens * D], q_columns[tile_tokens * D], dout[tile_tokens * D], dout_columns[tile_tokens * D];
    row_term_tile terms;
    float q_scale[folds ? tile_tokens : 4], do_scale[folds ? tile_tokens : 4];
    std::uint32_t nonfinite[4];
  };
  struct shared {
    std::uint8_t k[tile_tokens * D], v[tile_tokens * D];
    stage ring_of[stages];
    ring<stages> tiles;
    ptx::shared_barrier keys;
    poisoned_results<D> poisoned;
    /// The derivatives of a softcap, element by element: registers have no room for them.
    float cap[elements][readers * ptx::group_threads];
  };
  static constexpr int shared_bytes = sizeof(shared);

  backward_data<Recipe> data;
  image_operand q, k, v, dout;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots of queries]
  tensor dk, dv;

  std::int64_t blocks() const { return data.forward.kv_docs.slots(tile_tokens) * data.forward.problem.h_kv; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    const pass_data<Recipe>& d = data.forward;
    const std::int64_t h_kv = ptx::block_index() / k.slots, slot = ptx::block_index() % k.slots;
    const token_tile tile = d.kv_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    if (ptx::thread_index() == 0) {
      memory.tiles.init(readers * 4);
      memory.keys.init(1);
      ptx::fence_barriers();
    }
    memory.poisoned.clear(threads);
    ptx::sync_block();
    const std::int64_t group = d.problem.group();
    const head_of_document at = d.head(tile.document, h_kv * group);
    const key_ranges ranges = d.ranges(at);
    const tile_run all = query_tiles(ranges, at, tile);
    const std::int64_t first_q_slot = at.q.length == 0 ? 0 : d.q_docs.first_slot(at.document, tile_tokens);
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<24>();
      if (ptx::thread_index() == 0 && all.last > all.first)
        copy_tiles(memory, h_kv, k.tile(h_kv, slot), first_q_slot, all);
    } else {
      ptx::raise_registers<240>();
      consumer{*this, memory, at, tile, ranges, k.tile(h_kv, slot), first_q_slot}.run(all);
    }
  }

 private:
  /// The query tiles that see any key of the tile.
  OCTAVO_DEVICE static tile_run query_tiles(const key_ranges& ranges, const head_of_document& at,
                                            const token_tile& tile) {
    if (at.q.length == 0) return {0, 0};
    const key_range rows{ranges.rows_of(tile.first).first, ranges.rows_of(tile.first + tile.tokens - 1).last};
    const key_range tiles = tiles_of(rows, tile_tokens);
    return {static_cast<int>(tiles.first), static_cast<int>(tiles.last)};
  }

  OCTAVO_DEVICE void copy_tiles(shared& memory, std::int64_t h_kv, std::int64_t kv_tile, std::int64_t first_q_slot,
                                tile_run run) const {
    memory.keys.arrive_expecting(sizeof memory.k + sizeof memory.v);
    ptx::bulk_load(memory.k, k.images.rows + kv_tile * sizeof memory.k, sizeof memory.k, memory.keys);
    ptx::bulk_load(memory.v, v.images.rows + kv_tile * sizeof memory.v, sizeof memory.v, memory.keys);
    const std::int64_t group = data.forward.problem.group();
    ring_place<stages> place;
    for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) OCTAVO_NO_UNROLL
    for (int t = run.first; t < run.last; ++t, place.advance()) {
      stage& to = memory.ring_of[place.stage];
      const std::int64_t from = q.tile(h, first_q_slot + t);
      place.wait_empty(memory.tiles);
      ptx::shared_barrier& full = memory.tiles.full[place.stage];
      full.arrive_expecting(sizeof to.q + sizeof to.q_columns + sizeof to.dout + sizeof to.dout_columns +
                            sizeof to.terms + sizeof to.nonfinite +
                            (folds ? sizeof to.q_scale + sizeof to.do_scale : 0));
      ptx::bulk_load(to.q, q.images.rows + from * sizeof to.q, sizeof to.q, full);
      ptx::bulk_load(to.dout, dout.images.rows + from * sizeof to.dout, sizeof to.dout, full);
      ptx::bulk_load(&to.terms, terms + from, sizeof to.terms, full);
      ptx::bulk_load(to.dout_columns, dout.images.columns + from * sizeof to.dout_columns, sizeof to.dout_columns,
                     full);
      ptx::bulk_load(to.q_columns, q.images.columns + from * sizeof to.q_columns, sizeof to.q_columns, full);
      ptx::bulk_load(to.nonfinite, dout.images.nonfinite + from * 4, sizeof to.nonfinite, full);
      if constexpr (folds) {
        ptx::bulk_load(to.q_scale, q.scale + from * tile_tokens, sizeof to.q_scale, full);
        ptx::bulk_load(to.do_scale, dout.scale + from * tile_tokens, sizeof to.do_scale, full);
      }
    }
  }

  /// One warpgroup's 64 keys.
  struct consumer {
    const dkv_kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& tile;
    const key_ranges& ranges;
    std::int64_t kv_tile, first_q_slot;

    lane_place place = lane_place::here();
    int first_key = 64 * (place.group - 1);  ///< of the group within the tile
    row_keys queries[2] = {queries_of(0), queries_of(1)};
    tile_run seen_by_all = queries_of_all();  ///< queries that every key of the group is seen by
    score_map<functions> map = score_map<functions>::of(kernel.data.forward.scale, kernel.data.forward.problem.softcap);
    float k_scale[2] = {scale_of(kernel.k, 0), scale_of(kernel.k, 1)};
    float v_scale[2] = {scale_of(kernel.v, 0), scale_of(kernel.v, 1)};
    std::uint32_t v_nonfinite = any_bit(kernel.v.images.nonfinite + kv_tile * 4);
    float dk[D / 2] = {}, dv[D / 2] = {};

    OCTAVO_DEVICE int in_tile(int half) const { return first_key + place.row + 8 * half; }
    OCTAVO_DEVICE row_keys queries_of(int half) const {
      if (in_tile(half) >= tile.tokens || at.q.length == 0) return {0, 0};
      const key_range rows = ranges.rows_of(tile.first + in_tile(half));
      return {static_cast<int>(rows.first), static_cast<int>(rows.last)};
    }
    OCTAVO_DEVICE tile_run queries_of_all() const {
      if (first_key + 64 > tile.tokens || at.q.length == 0) return {0, 0};
      // Runs only move forward: the last key's begins last, the first one's ends first.
      return {static_cast<int>(ranges.rows_of(tile.first + first_key + 63).first),
              static_cast<int>(ranges.rows_of(tile.first + first_key).last)};
    }
    OCTAVO_DEVICE float scale_of(const image_operand& x, int half) const {
      return folds ? x.scale[kv_tile * tile_tokens + in_tile(half)] : x.scale[kv_tile];
    }

    OCTAVO_DEVICE void run(tile_run all) {
      const std::int64_t group = kernel.data.forward.problem.group(), first_head = at.h_kv * group;
      ring_place<stages> at_stage;
      if (all.last > all.first) memory.keys.wait(0);
      for (std::int64_t h = first_head; h < first_head + group; ++h)
        for (int t = all.first; t < all.last; ++t, at_stage.advance()) {
          const stage& from = memory.ring_of[at_stage.stage];
          const std::int64_t q_tile = kernel.q.tile(h, first_q_slot + t);
          const float q_scale = folds ? 1.0f : kernel.q.scale[q_tile],
                      do_scale = folds ? 1.0f : kernel.dout.scale[q_tile];
          at_stage.wait_full(memory.tiles);
          OCTAVO_NO_UNROLL
          for (int first = 0; first < tile_tokens; first += step)
            add_queries(from, first, t * tile_tokens + first, q_scale, do_scale);
          ptx::sync_warp();
          if (place.lane == 0) memory.tiles.empty[at_stage.stage].arrive();
        }
      finish();
    }

   private:
    /// Queries [first, first + 64) of the stage's tile, the first of which is number `query` of its document.
    OCTAVO_DEVICE void add_queries(const stage& from, int first, int query, float q_scale, float do_scale) {
      float s[elements], dp[elements];
      start_product<D>(s, ptx::matrix::at(memory.k + first_key * chunk_bytes, tile_tokens),
                       ptx::matrix::at(from.q + first * chunk_bytes, tile_tokens));
      start_product<D>(dp, ptx::matrix::at(memory.v + first_key * chunk_bytes, tile_tokens),
                       ptx::matrix::at(from.dout + first * chunk_bytes, tile_tokens));
      finish_product<1>(s);

      const auto at_query = [&](const float* x, int i) { return x[first + column(i, place.quad_lane)]; };
      // The same operations as in the row loops, on the transposed fragment.
      const auto factor = [&](int i) {
        if (map.softcap != 0) return 1.0f;
        return folds ? at_least_tiny(map.scale_log2 * at_query(from.q_scale, i))
                     : at_least_tiny(map.scale_log2 * q_scale * k_scale[0]);
      };
      finish_scores(s, from, first, q_scale);
      probabilities<Recipe, Delta>(
          s, factor, [&](int i) { return at_query(from.terms.exponent, i); },
          [&](int i) { return at_query(from.terms.weight, i); }, [&](int i) { return fold_of(row_half(i)); });
      if (!(query >= seen_by_all.first && query + step <= seen_by_all.last)) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i)
          if (!queries[row_half(i)].allows(query + column(i, place.quad_lane))) s[i] = 0;
      }

      finish_product<0>(dp);
      if ((v_nonfinite | any_bit(from.nonfinite)) != 0) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i)
          if (s[i] == 0) dp[i] = 0;
      }
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) {
        const float of_query = folds ? at_query(from.do_scale, i) : do_scale * v_scale[0];
        if constexpr (folds) dp[i] *= v_scale[row_half(i)];
        dp[i] = s[i] * (fmaf(dp[i], of_query, -at_query(from.terms.shift, i)) - at_query(from.terms.delta, i));
      }
      if (map.softcap != 0) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) dp[i] = weighted(dp[i], memory.cap[i][reader()]);
      }
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) {
          s[i] *= at_query(from.do_scale, i);
          dp[i] *= at_query(from.q_scale, i);
        }
      }
      // Both are packed before a product starts: its registers take the place of the unpacked ones.
      std::uint32_t p_packed[step / 32][4], ds_packed[step / 32][4];
      float p_down[2], ds_down[2], part[D / 2];
      pack_scaled<E>(s, p_packed, p_down);
      pack_scaled<G>(dp, ds_packed, ds_down);
      start_product(part, p_packed, ptx::matrix::at(from.dout_columns, D).along_k(first / chunk_bytes));
      finish_product<0>(part);
      if (any_bit(from.nonfinite) != 0)
        memory.poisoned.note(p_packed, first_key + place.row, place.quad_lane, from.dout_columns, D, first,
                             from.nonfinite);
      add(dv, part, p_down, do_scale);
      start_product(part, ds_packed, ptx::matrix::at(from.q_columns, D).along_k(first / chunk_bytes));
      finish_product<0>(part);
      add(dk, part, ds_down, q_scale);
    }

    OCTAVO_DEVICE void finish_scores(float (&s)[elements], const stage& from, int first, float q_scale) const {
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) s[i] *= k_scale[row_half(i)];
      }
      if (map.softcap == 0) return;
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) {
        const float factor = folds ? map.scale_log2 * from.q_scale[first + column(i, place.quad_lane)]
                                   : map.scale_log2 * q_scale * k_scale[0];
        s[i] = map.capped(s[i] * at_least_tiny(factor));
        memory.cap[i][reader()] = map.cap_derivative(s[i]);
      }
    }

    /// consistent with `token`: log2 of the scale of V that the forward folded into P.
    OCTAVO_DEVICE float fold_of(int half) const {
      if constexpr (folds && Delta::reuses_forward_p)
        return kernel.v.fold[kv_tile * tile_tokens + in_tile(half)];
      else
        return 0;
    }

    /// x rounded to T with a power of two per key; down undoes it.
    template <class T>
    OCTAVO_DEVICE static void pack_scaled(float (&x)[elements], std::uint32_t (&packed)[step / 32][4],
                                          float (&down)[2]) {
      float amax[2] = {0, 0}, up[2];
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) amax[row_half(i)] = fmaxf(amax[row_half(i)], fabsf(x[i]));
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const power_of_two_scale scale = power_of_two_scale::of<T>(max_over_quad(amax[half]));
        up[half] = scale.up, down[half] = scale.down;
      }
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) x[i] *= up[row_half(i)];
      pack_rows<T>(x, packed);
    }

    OCTAVO_DEVICE static void add(float (&sum)[D / 2], const float (&part)[D / 2], const float (&down)[2],
                                  float scale) {
      const float factor[2] = {down[0] * scale, down[1] * scale};
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; ++i) sum[i] = fmaf(part[i], factor[row_half(i)], sum[i]);
    }

    OCTAVO_DEVICE static int reader() { return ptx::thread_index() - ptx::group_threads; }

    OCTAVO_DEVICE void finish() {
      ptx::sync_named(place.group, ptx::group_threads);  // the whole group notes before any of it looks
      if (memory.poisoned.any != 0) {
        OCTAVO_UNROLL
        for (int i = 0; i < D / 2; ++i)
          if (memory.poisoned.holds(in_tile(row_half(i)), column(i, place.quad_lane))) dv[i] = detail::float_nan();
      }
      write(kernel.dk, dk, kernel.data.forward.scale);
      write(kernel.dv, dv, 1.0f);
    }
    OCTAVO_DEVICE void write(const tensor& to, const float (&x)[D / 2], float scale) const {
      const pair_writer write(to);
      const std::int64_t first =
          element_offset(to, kernel.data.forward.kv_docs, tile.document, tile.first, at.h_kv) + 2 * place.quad_lane;
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; i += 2)
        if (in_tile(row_half(i)) < tile.tokens)
          write(first + in_tile(row_half(i)) * to.stride_s + i / 4 * 8, x[i] * scale, x[i + 1] * scale);
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
