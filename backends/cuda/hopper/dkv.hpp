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

#include <octavo/backends/cuda/common/ring.hpp>
#include <octavo/backends/cuda/common/row_terms.hpp>
#include <octavo/backends/cuda/hopper/nonfinite.hpp>
#include <octavo/backends/simt/probabilities.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe, class Delta, int D>
struct dkv_kernel {
  static constexpr const char* name = "hopper dK dV";
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  static constexpr bool folds = folds_token_scales<Recipe>;
  /// At d 128, dK and dV take 128 of a reader's 240 registers and two products 64. `token` with the consistent delta,
  /// which needs most beside them, keeps some ten words of factors in local memory.
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : 2;
  static constexpr int step = 64;            ///< queries of a fragment
  static constexpr int elements = step / 2;  ///< of a thread in it

  struct stage {
    std::uint8_t q[tile_tokens * D], q_columns[tile_tokens * D], dout[tile_tokens * D], dout_columns[tile_tokens * D];
    row_term_tile terms;
    float q_scale[scales_per_tile<Recipe>], do_scale[scales_per_tile<Recipe>];
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
  OCTAVO_DEVICE void copy_tiles(shared& memory, std::int64_t h_kv, std::int64_t kv_tile, std::int64_t first_q_slot,
                                tile_run run) const {
    memory.keys.arrive_expecting(sizeof memory.k + sizeof memory.v);
    ptx::bulk_load(memory.k, k.images.rows + kv_tile * sizeof memory.k, sizeof memory.k, memory.keys);
    ptx::bulk_load(memory.v, v.images.rows + kv_tile * sizeof memory.v, sizeof memory.v, memory.keys);
    const std::int64_t group = data.forward.problem.group();
    ring_place<stages> place;
    for (std::int64_t h = h_kv * group; h < (h_kv + 1) * group; ++h) {
      OCTAVO_NO_UNROLL
      for (int t = run.first; t < run.last; ++t, place.advance()) {
        stage& to = memory.ring_of[place.stage];
        const std::int64_t from = q.tile(h, first_q_slot + t);
        place.wait_empty(memory.tiles);
        ptx::shared_barrier& full = memory.tiles.full[place.stage];
        full.arrive_expecting(sizeof to.q + sizeof to.q_columns + sizeof to.dout + sizeof to.dout_columns +
                              sizeof to.terms + sizeof to.nonfinite + sizeof to.q_scale + sizeof to.do_scale);
        ptx::bulk_load(to.q, q.images.rows + from * sizeof to.q, sizeof to.q, full);
        ptx::bulk_load(to.dout, dout.images.rows + from * sizeof to.dout, sizeof to.dout, full);
        ptx::bulk_load(&to.terms, terms + from, sizeof to.terms, full);
        ptx::bulk_load(to.dout_columns, dout.images.columns + from * sizeof to.dout_columns, sizeof to.dout_columns,
                       full);
        ptx::bulk_load(to.q_columns, q.images.columns + from * sizeof to.q_columns, sizeof to.q_columns, full);
        ptx::bulk_load(to.nonfinite, dout.images.nonfinite + from * 4, sizeof to.nonfinite, full);
        constexpr int factors = scales_per_tile<Recipe>;
        ptx::bulk_load(to.q_scale, q.scale + from * factors, sizeof to.q_scale, full);
        ptx::bulk_load(to.do_scale, dout.scale + from * factors, sizeof to.do_scale, full);
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
    ptx::matrix keys = ptx::matrix::at(memory.k + first_key * chunk_bytes, tile_tokens);
    ptx::matrix values = ptx::matrix::at(memory.v + first_key * chunk_bytes, tile_tokens);
    ptx::matrix first_q = ptx::matrix::at(memory.ring_of[0].q, tile_tokens);  ///< of the first stage
    ptx::matrix first_dout = ptx::matrix::at(memory.ring_of[0].dout, tile_tokens);
    ptx::matrix first_q_columns = ptx::matrix::at(memory.ring_of[0].q_columns, D);
    ptx::matrix first_dout_columns = ptx::matrix::at(memory.ring_of[0].dout_columns, D);
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
      return x.scale[kv_tile * scales_per_tile<Recipe> + (folds ? in_tile(half) : 0)];
    }

    OCTAVO_DEVICE void run(tile_run all) {
      const std::int64_t first_head = at.h_kv * kernel.data.forward.problem.group();
      const int steps = static_cast<int>(kernel.data.forward.problem.group()) * (all.last - all.first) * tile_steps;
      if (steps == 0) return finish();
      memory.keys.wait(0);
      step_place here{first_head, all.first, 0, {}};
      here.stage.wait_full(memory.tiles);
      float x[elements], y[elements];  // S^T and dP^T, then the products with dO and Q, half by half
      start_scores(here, x);
      start_dp(here, y);
      finish_product<1>(x);
      make_p(x, here);
      finish_product<0>(y);
      const turns turn{place.group};
      turn.begin();
      for (int i = 1; i < steps; ++i) {
        step_place next = here;
        next.advance(all);
        add_step<true>(here, next, turn, x, y);
        here = next;
      }
      add_step<false>(here, here, turn, x, y);
      turn.end();
      finish();
    }

   private:
    static constexpr int tile_steps = tile_tokens / step;
    /// The parts of 64 channels in which a product of all channels is made.
    static constexpr int parts = D / 64;

    /// 64 queries of one head: half of a stage.
    struct step_place {
      std::int64_t h;
      int t, first;  ///< tile of queries in its document; the first query in the tile
      ring_place<stages> stage;

      OCTAVO_DEVICE bool begins_stage() const { return first == 0; }
      OCTAVO_DEVICE bool ends_stage() const { return first + step == tile_tokens; }
      OCTAVO_DEVICE void advance(tile_run all) {
        first += step;
        if (first < tile_tokens) return;
        first = 0;
        stage.advance();
        if (++t < all.last) return;
        t = all.first;
        ++h;
      }
    };

    /// The scale of a stage's Q or dO; 1 for `token`, which multiplies by each query's own.
    OCTAVO_DEVICE static float tile_scale(const float* scales) { return folds ? 1.0f : scales[0]; }
    /// A stage's matrix, from that of the first one.
    OCTAVO_DEVICE static ptx::matrix in_stage(ptx::matrix of_first, const step_place& here) {
      return of_first.behind(here.stage.stage, sizeof(stage));
    }
    OCTAVO_DEVICE void start_scores(const step_place& here, float (&s)[elements]) const {
      start_product<D>(s, keys, in_stage(first_q, here).behind(here.first, chunk_bytes));
    }
    OCTAVO_DEVICE void start_dp(const step_place& here, float (&dp)[elements]) const {
      start_product<D>(dp, values, in_stage(first_dout, here).behind(here.first, chunk_bytes));
    }
    /// Channels [64 part, 64 part + 64) of a product with a column image.
    OCTAVO_DEVICE static void start_part(float (&x)[elements], const std::uint32_t (&packed)[step / 32][4],
                                         ptx::matrix first_columns, const step_place& here, int part) {
      start_product(x, packed,
                    in_stage(first_columns, here).along_k(here.first / chunk_bytes).behind(64 * part, chunk_bytes));
    }

    /// One step, whose P^T and raw dP^T are x and y; then they are those of the next one. All products are made in one
    /// turn and follow each other without a gap: while one is computed, the one before is added. (None is left running from one call to the next:
    /// the compiler would wait after every single one.)
    template <bool has_next>
    OCTAVO_DEVICE void add_step(const step_place& here, const step_place& next, const turns& turn, float (&x)[elements],
                                float (&y)[elements]) {
      const stage& from = memory.ring_of[here.stage.stage];
      const float q_scale = tile_scale(from.q_scale), do_scale = tile_scale(from.do_scale);
      std::uint32_t p_packed[step / 32][4], ds_packed[step / 32][4];
      float p_down[2], ds_down[2];
      make_ds(x, y, from, here.first, do_scale);
      pack_scaled<E>(x, p_packed, p_down);
      if (any_bit(from.nonfinite) != 0) [[unlikely]]
        memory.poisoned.note(p_packed, place, first_key, from.dout_columns, D, here.first, from.nonfinite);
      pack_scaled<G>(y, ds_packed, ds_down);
      const float p_factor[2] = {p_down[0] * do_scale, p_down[1] * do_scale};
      const float ds_factor[2] = {ds_down[0] * q_scale, ds_down[1] * q_scale};
      if constexpr (has_next)
        if (next.begins_stage()) next.stage.wait_full(memory.tiles);
      turn.take();
      start_part(x, p_packed, first_dout_columns, here, 0);
      if constexpr (parts == 2) {
        start_part(y, p_packed, first_dout_columns, here, 1);
        finish_product<1>(x);
        add<0>(dv, x, p_factor);
        start_part(x, ds_packed, first_q_columns, here, 0);
        finish_product<1>(y);
        add<1>(dv, y, p_factor);
        start_part(y, ds_packed, first_q_columns, here, 1);
        finish_product<1>(x);
        add<0>(dk, x, ds_factor);
      } else {
        start_part(y, ds_packed, first_q_columns, here, 0);
        finish_product<1>(x);
        add<0>(dv, x, p_factor);
      }
      if constexpr (has_next) start_scores(next, x);
      finish_product<(has_next ? 1 : 0)>(y);
      add<parts - 1>(dk, y, ds_factor);
      if constexpr (has_next) start_dp(next, y);
      if (here.ends_stage()) {
        ptx::sync_warp();
        if (place.lane == 0) memory.tiles.empty[here.stage.stage].arrive();
      }
      if constexpr (has_next) finish_product<1>(x);
      turn.pass();
      if constexpr (has_next) {
        make_p(x, next);
        finish_product<0>(y);
      }
    }

    /// P^T from raw products: the same operations as in the row loops, on the transposed fragment.
    OCTAVO_DEVICE void make_p(float (&s)[elements], const step_place& here) const {
      const stage& from = memory.ring_of[here.stage.stage];
      const float q_scale = tile_scale(from.q_scale);
      const int first = here.first, query = here.t * tile_tokens + first;
      const auto at_query = [&](const float* x, int i) { return x[first + column(i, place.quad_lane)]; };
      const bool capped = map.softcap != 0;
      const float of_tile = capped ? 1.0f : at_least_tiny(map.scale_log2 * q_scale * k_scale[0]);
      finish_scores(s, from, first, q_scale);
      simt::probabilities<functions, Recipe, Delta>(
          s, any_bit(from.terms.special) != 0,
          [&](int i) {
            if constexpr (!folds) return of_tile;
            return capped ? 1.0f : at_least_tiny(map.scale_log2 * at_query(from.q_scale, i));
          },
          [&](int i) { return at_query(from.terms.exponent, i); },
          [&](int i) { return at_query(from.terms.weight, i); }, [&](int i) { return fold_of(row_half(i)); });
      if (query >= seen_by_all.first && query + step <= seen_by_all.last) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i)
        if (!queries[row_half(i)].allows(query + column(i, place.quad_lane))) s[i] = 0;
    }

    /// dS^T from P^T and raw dP^T; `token`: both with the scales of their queries folded in.
    OCTAVO_DEVICE void make_ds(float (&p)[elements], float (&dp)[elements], const stage& from, int first,
                               float do_scale) const {
      const auto at_query = [&](const float* x, int i) { return x[first + column(i, place.quad_lane)]; };
      const float of_tile = do_scale * v_scale[0];
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) {
        const float of_query = folds ? at_query(from.do_scale, i) : of_tile;
        if constexpr (folds) dp[i] *= v_scale[row_half(i)];
        dp[i] = p[i] * (fmaf(dp[i], of_query, -at_query(from.terms.shift, i)) - at_query(from.terms.delta, i));
      }
      // A pair without weight has no gradient, whatever dP and delta are.
      if ((v_nonfinite | any_bit(from.nonfinite) | any_bit(from.terms.nonfinite)) != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i)
          if (p[i] == 0) dp[i] = 0;
      }
      if (map.softcap != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) dp[i] = weighted(dp[i], memory.cap[i][reader()]);
      }
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) {
          p[i] *= at_query(from.do_scale, i);
          dp[i] *= at_query(from.q_scale, i);
        }
      }
    }

    OCTAVO_DEVICE void finish_scores(float (&s)[elements], const stage& from, int first, float q_scale) const {
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) s[i] *= k_scale[row_half(i)];
      }
      if (map.softcap == 0) [[likely]]
        return;
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
      float amax[2], up[2];
      row_amax(x, amax);
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const power_of_two_scale scale = power_of_two_scale::of<T>(max_over_quad(amax[half]));
        up[half] = scale.up, down[half] = scale.down;
      }
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i) x[i] *= up[row_half(i)];
      pack_rows<T>(x, packed);
    }

    /// Adds channels [64 part, 64 part + 64).
    template <int part>
    OCTAVO_DEVICE static void add(float (&sum)[D / 2], const float (&x)[elements], const float (&factor)[2]) {
      OCTAVO_UNROLL
      for (int i = 0; i < elements; ++i)
        sum[part * elements + i] = fmaf(x[i], factor[row_half(i)], sum[part * elements + i]);
    }

    OCTAVO_DEVICE static int reader() { return ptx::thread_index() - ptx::group_threads; }

    OCTAVO_DEVICE void finish() {
      ptx::sync_named(place.group, ptx::group_threads);  // the whole group notes before any of it looks
      if (memory.poisoned.any[place.group - 1] != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < D / 2; ++i)
          if (memory.poisoned.holds(in_tile(row_half(i)), column(i, place.quad_lane))) dv[i] = detail::float_nan();
      }
      write(kernel.dk, dk, kernel.data.forward.scale);
      write(kernel.dv, dv, 1.0f);
    }
    OCTAVO_DEVICE void write(const tensor& to, const float (&x)[D / 2], float scale) const {
      const std::int64_t first =
          element_offset(to, kernel.data.forward.kv_docs, tile.document, tile.first + in_tile(0), at.h_kv) +
          2 * place.quad_lane;
      const bool exists[2] = {in_tile(0) < tile.tokens, in_tile(1) < tile.tokens};
      const fragment_writer<D / 2> writer(to, first, exists);
      writer.write([&](int i) { return x[i] * scale; });
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
