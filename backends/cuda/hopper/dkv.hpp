// SPDX-License-Identifier: Apache-2.0
// dK and dV on Hopper: a block takes 128 keys of one head, and then the next ones that it draws, 64 a warpgroup, and walks
// over the query tiles that see them, for every query head of their group, 64 queries at a time:
//
//     S^T = K Q^T     dP^T = V dO^T     P^T = 2^(s - exponent)     dS^T = P^T ((dP - c) - (delta - c))
//     dV += quant(P^T) dO               dK += quant(dS^T) Q        quantised per key and 64 queries
//
// The transposed scores have keys in rows, so that P^T and dS^T go from registers into the second products as they are,
// and dK and dV stay in registers for the whole walk: grouped heads need no reduction, and no order is left to chance.
#pragma once

#include <octavo/backends/cuda/common/row_terms.hpp>
#include <octavo/backends/cuda/common/tile_work.hpp>
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
  /// consistent with `token`: P takes in the scales of V as it did in the forward.
  static constexpr bool with_v_fold = folds && Delta::reuses_forward_p;
  /// At d 128, dK and dV take 128 of a reader's 240 registers and two products 64. The factors of `token` come on top: it
  /// may keep a word of them in local memory.
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : 2;
  static constexpr int places = D <= 64 ? 2 : 1;  ///< for tiles of keys: there is no memory for more
  static constexpr int step = 64;                 ///< queries of a fragment
  static constexpr int elements = step / 2;       ///< of a thread in it

  struct stage {
    alignas(matrix_bytes) std::uint8_t q[tile_tokens * D], q_columns[tile_tokens * D], dout[tile_tokens * D],
        dout_columns[tile_tokens * D];
    row_term_tile terms;
    float q_scale[scales_per_tile<Recipe>], do_scale[scales_per_tile<Recipe>];
    std::uint32_t nonfinite[4];
  };
  /// A tile of keys.
  struct keys_of_tile {
    alignas(matrix_bytes) std::uint8_t k[tile_tokens * D], v[tile_tokens * D];
    float k_scale[scales_per_tile<Recipe>], v_scale[scales_per_tile<Recipe>];
    float v_fold[with_v_fold ? tile_tokens : 4];
    std::uint32_t nonfinite[4];  ///< of V
  };
  struct shared {
    keys_of_tile keys[places];
    stage ring_of[stages];
    drawn_tiles<places> drawn;
    ring<stages> tiles;
    poisoned_results<D> poisoned;
    /// The derivatives of a softcap, element by element: registers have no room for them.
    float cap[elements][readers * ptx::group_threads];
  };
  static constexpr int shared_bytes = sizeof(shared);

  backward_data<Recipe> data;
  image_operand q, k, v, dout;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots of queries]
  tensor dk, dv;
  work_list list{};  ///< of key tiles

  std::int64_t blocks(int multiprocessors) const { return list.blocks(multiprocessors); }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    if (ptx::thread_index() == 0) {
      memory.drawn.at.init(readers * 4);
      memory.tiles.init(readers * 4);
      ptx::fence_barriers();
    }
    memory.poisoned.clear(threads);
    ptx::sync_block();
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<24>();
      if (ptx::thread_index() == 0) copy_tiles(memory);
    } else {
      ptx::raise_registers<240>();
      const lane_place lane = lane_place::here();
      const turns turn{lane.group};
      ring_place<stages> now;
      turn.begin();
      memory.drawn.visit_all([&](const tile_work& work, const ring_place<places>& drawn) {
        consumer{*this, memory, work, memory.keys[drawn.stage], lane}.run(now, turn, drawn);
      });
      turn.end();
    }
  }

 private:
  OCTAVO_DEVICE void copy_tiles(shared& memory) const {
    constexpr int factors = scales_per_tile<Recipe>;
    const int group = static_cast<int>(data.forward.problem.group());
    ring_place<stages> place;
    memory.drawn.draw_all(
        list,
        [&](const tile_work& work, int stage, ptx::shared_barrier& full) {
          const std::int64_t from = work.image;
          keys_of_tile& to = memory.keys[stage];
          full.arrive_expecting(memory.drawn.expected + sizeof to.k + sizeof to.v + sizeof to.k_scale +
                                sizeof to.v_scale + sizeof to.nonfinite + (with_v_fold ? sizeof to.v_fold : 0));
          ptx::bulk_load(to.k, k.images.rows + from * sizeof to.k, sizeof to.k, full);
          ptx::bulk_load(to.v, v.images.rows + from * sizeof to.v, sizeof to.v, full);
          ptx::bulk_load(to.k_scale, k.scale + from * factors, sizeof to.k_scale, full);
          ptx::bulk_load(to.v_scale, v.scale + from * factors, sizeof to.v_scale, full);
          ptx::bulk_load(to.nonfinite, v.images.nonfinite + from * 4, sizeof to.nonfinite, full);
          if constexpr (with_v_fold) ptx::bulk_load(to.v_fold, v.fold + from * tile_tokens, sizeof to.v_fold, full);
        },
        [&](const tile_work& work) {
          OCTAVO_NO_UNROLL
          for (int h = work.head * group; h < (work.head + 1) * group; ++h) {
            OCTAVO_NO_UNROLL
            for (int t = work.seen.first; t < work.seen.last; ++t, place.advance())
              start_queries(memory, q.tile(h, work.first_seen + t), place);
          }
        });
  }
  OCTAVO_DEVICE void start_queries(shared& memory, std::int64_t from, const ring_place<stages>& place) const {
    constexpr int factors = scales_per_tile<Recipe>;
    stage& to = memory.ring_of[place.stage];
    place.wait_empty(memory.tiles);
    ptx::shared_barrier& full = memory.tiles.full[place.stage];
    full.arrive_expecting(sizeof to.q + sizeof to.q_columns + sizeof to.dout + sizeof to.dout_columns +
                          sizeof to.terms + sizeof to.nonfinite + sizeof to.q_scale + sizeof to.do_scale);
    ptx::bulk_load(to.q, q.images.rows + from * sizeof to.q, sizeof to.q, full);
    ptx::bulk_load(to.dout, dout.images.rows + from * sizeof to.dout, sizeof to.dout, full);
    ptx::bulk_load(&to.terms, terms + from, sizeof to.terms, full);
    ptx::bulk_load(to.dout_columns, dout.images.columns + from * sizeof to.dout_columns, sizeof to.dout_columns, full);
    ptx::bulk_load(to.q_columns, q.images.columns + from * sizeof to.q_columns, sizeof to.q_columns, full);
    ptx::bulk_load(to.nonfinite, dout.images.nonfinite + from * 4, sizeof to.nonfinite, full);
    ptx::bulk_load(to.q_scale, q.scale + from * factors, sizeof to.q_scale, full);
    ptx::bulk_load(to.do_scale, dout.scale + from * factors, sizeof to.do_scale, full);
  }

  /// One warpgroup's 64 keys.
  struct consumer {
    const dkv_kernel& kernel;
    shared& memory;
    const tile_work& work;
    const keys_of_tile& of_tile;
    const lane_place& place;

    int first_key = 64 * (place.group - 1);  ///< of the group within the tile
    ptx::matrix keys = ptx::matrix::at(of_tile.k + first_key * chunk_bytes, tile_tokens);
    ptx::matrix values = ptx::matrix::at(of_tile.v + first_key * chunk_bytes, tile_tokens);
    ptx::matrix first_q = ptx::matrix::at(memory.ring_of[0].q, tile_tokens);  ///< of the first stage
    ptx::matrix first_dout = ptx::matrix::at(memory.ring_of[0].dout, tile_tokens);
    ptx::matrix first_q_columns = ptx::matrix::at(memory.ring_of[0].q_columns, D);
    ptx::matrix first_dout_columns = ptx::matrix::at(memory.ring_of[0].dout_columns, D);
    row_keys queries[2] = {work.sees(work.first + in_tile(0)), work.sees(work.first + in_tile(1))};
    row_keys seen_by_all = work.seen_by_all[place.group - 1];  ///< queries that every key of the group is seen by
    tile_run seen = work.seen;
    score_map<functions> map = score_map<functions>::of(kernel.data.forward.scale, kernel.data.forward.problem.softcap);
    float k_scale[2] = {scale_of(of_tile.k_scale, 0), scale_of(of_tile.k_scale, 1)};
    float v_scale[2] = {scale_of(of_tile.v_scale, 0), scale_of(of_tile.v_scale, 1)};
    std::uint32_t v_nonfinite = any_bit(of_tile.nonfinite);
    float dk[D / 2] = {}, dv[D / 2] = {};

    OCTAVO_DEVICE int in_tile(int half) const { return first_key + place.row + 8 * half; }
    OCTAVO_DEVICE float scale_of(const float* scales, int half) const { return scales[folds ? in_tile(half) : 0]; }

    OCTAVO_DEVICE void run(ring_place<stages>& now, const turns& turn, const ring_place<places>& drawn) {
      const int group = static_cast<int>(kernel.data.forward.problem.group());
      const int steps = group * (seen.last - seen.first) * tile_steps;
      const place_of_results to{work.document, work.head, work.first, work.tokens};
      if (steps > 0) walk(steps, now, turn);
      drawn.release(memory.drawn.at, place.lane);  // the next tile of keys comes while this one's results are written
      finish(to);
    }

   private:
    /// What is left to know of the tile when its keys have been read.
    struct place_of_results {
      int document, head, first, tokens;
    };
    OCTAVO_DEVICE void walk(int steps, ring_place<stages>& now, const turns& turn) {
      step_place here{seen.first, 0, now};
      here.stage.wait_full(memory.tiles);
      float x[elements], y[elements];  // S^T and dP^T, then the products with dO and Q, half by half
      start_scores(here, x);
      start_dp(here, y);
      finish_product<1>(x);
      make_p<false>(x, here);
      finish_product<0>(y);
      int left = steps - 1;
      while (left > 0) {
        while (left > 0 && is_plain(here)) add_step<following::plain>(here, turn, x, y), --left;
        if (left > 0) add_step<following::any>(here, turn, x, y), --left;
      }
      add_step<following::none>(here, turn, x, y);
      here.advance(seen);
      now = here.stage;
    }

    static constexpr int tile_steps = tile_tokens / step;
    /// The parts of 64 channels in which a product of all channels is made.
    static constexpr int parts = D / 64;

    /// 64 queries of one head: half of a stage.
    struct step_place {
      int t, first;  ///< tile of queries in its document; the first query in the tile
      ring_place<stages> stage;

      OCTAVO_DEVICE bool begins_stage() const { return first == 0; }
      OCTAVO_DEVICE bool ends_stage() const { return first + step == tile_tokens; }
      OCTAVO_DEVICE void advance(tile_run all) {
        first += step;
        if (first < tile_tokens) return;
        first = 0;
        stage.advance();
        if (++t == all.last) t = all.first;  // of the next head
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

    /// Of a step: none follows; one follows, and neither needs what few steps do; one follows.
    enum class following { none, plain, any };

    /// Nearly all steps: what the others need is not in the loop over these, since instructions that are jumped over are
    /// fetched late.
    OCTAVO_DEVICE bool is_plain(const step_place& here) const {
      const stage& from = memory.ring_of[here.stage.stage];
      step_place next = here;
      next.advance(seen);
      return map.softcap == 0 && is_seen_by_all(next) &&
             (v_nonfinite | any_bit(from.nonfinite) | any_bit(from.terms.nonfinite)) == 0;
    }
    OCTAVO_DEVICE bool is_seen_by_all(const step_place& at) const {
      const int query = at.t * tile_tokens + at.first;
      return query >= seen_by_all.first && query + step <= seen_by_all.last;
    }

    /// One step, whose P^T and raw dP^T are x and y; then they are those of the next one, which `here` moves to. All
    /// products are made in one turn and follow each other without a gap: while one is computed, the one before is added.
    /// (None is left running from one call to the next: the compiler would wait after every single one.)
    template <following follows>
    OCTAVO_DEVICE void add_step(step_place& here, const turns& turn, float (&x)[elements], float (&y)[elements]) {
      constexpr bool has_next = follows != following::none, plain = follows == following::plain;
      step_place next = here;
      if constexpr (has_next) next.advance(seen);
      const stage& from = memory.ring_of[here.stage.stage];
      const float q_scale = tile_scale(from.q_scale), do_scale = tile_scale(from.do_scale);
      std::uint32_t p_packed[step / 32][4], ds_packed[step / 32][4];
      float p_down[2], ds_down[2];
      make_ds<plain>(x, y, from, here.first, do_scale);
      pack_scaled<E, true>(x, p_packed, p_down);
      if (!plain && any_bit(from.nonfinite) != 0)
        memory.poisoned.note(p_packed, place, first_key, from.dout_columns, D, here.first, from.nonfinite);
      pack_scaled<G, false>(y, ds_packed, ds_down);
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
      if (here.ends_stage()) here.stage.release(memory.tiles, place.lane);
      if constexpr (has_next) finish_product<1>(x);
      turn.pass();
      if constexpr (has_next) {
        make_p<plain>(x, next);
        finish_product<0>(y);
        here = next;
      }
    }

    /// P^T from raw products: the same operations as in the row loops, on the transposed fragment.
    template <bool plain>
    OCTAVO_DEVICE void make_p(float (&s)[elements], const step_place& here) const {
      const stage& from = memory.ring_of[here.stage.stage];
      const float q_scale = tile_scale(from.q_scale);
      const int first = here.first, query = here.t * tile_tokens + first;
      const auto at_query = [&](const float* x, int i) { return x[first + column(i, place.quad_lane)]; };
      const bool capped = !plain && map.softcap != 0;
      const float of_tile = capped ? 1.0f : at_least_tiny(map.scale_log2 * q_scale * k_scale[0]);
      finish_scores<plain>(s, from, first, q_scale);
      simt::probabilities<functions, Recipe, Delta>(
          s, any_bit(from.terms.special) != 0,
          [&](int i) {
            if constexpr (!folds) return of_tile;
            return capped ? 1.0f : at_least_tiny(map.scale_log2 * at_query(from.q_scale, i));
          },
          [&](int i) { return at_query(from.terms.exponent, i); },
          [&](int i) { return at_query(from.terms.weight, i); }, [&](int i) { return fold_of(row_half(i)); });
      if constexpr (!plain)
        if (!is_seen_by_all(here)) {
          OCTAVO_UNROLL
          for (int i = 0; i < elements; ++i)
            if (!queries[row_half(i)].allows(query + column(i, place.quad_lane))) s[i] = 0;
        }
    }

    /// dS^T from P^T and raw dP^T; `token`: both with the scales of their queries folded in.
    template <bool plain>
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
      if (!plain && (v_nonfinite | any_bit(from.nonfinite) | any_bit(from.terms.nonfinite)) != 0) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i)
          if (p[i] == 0) dp[i] = 0;
      }
      if (!plain && map.softcap != 0) {
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

    template <bool plain>
    OCTAVO_DEVICE void finish_scores(float (&s)[elements], const stage& from, int first, float q_scale) const {
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) s[i] *= k_scale[row_half(i)];
      }
      if constexpr (!plain) {
        if (map.softcap == 0) return;
        OCTAVO_UNROLL
        for (int i = 0; i < elements; ++i) {
          const float factor = folds ? map.scale_log2 * from.q_scale[first + column(i, place.quad_lane)]
                                     : map.scale_log2 * q_scale * k_scale[0];
          s[i] = map.capped(s[i] * at_least_tiny(factor));
          memory.cap[i][reader()] = map.cap_derivative(s[i]);
        }
      }
    }

    /// consistent with `token`: log2 of the scale of V that the forward folded into P.
    OCTAVO_DEVICE float fold_of(int half) const {
      if constexpr (folds && Delta::reuses_forward_p)
        return of_tile.v_fold[in_tile(half)];
      else
        return 0;
    }

    /// x rounded to T with a power of two per key; down undoes it.
    template <class T, bool none_negative>
    OCTAVO_DEVICE static void pack_scaled(float (&x)[elements], std::uint32_t (&packed)[step / 32][4],
                                          float (&down)[2]) {
      float amax[2], up[2];
      if constexpr (none_negative)
        row_maximum_of_bits(x, amax);
      else
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

    OCTAVO_DEVICE void finish(const place_of_results& to) {
      ptx::sync_named(place.group, ptx::group_threads);  // the whole group notes before any of it looks
      if (memory.poisoned.any[place.group - 1] != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < D / 2; ++i)
          if (memory.poisoned.holds(in_tile(row_half(i)), column(i, place.quad_lane))) dv[i] = detail::float_nan();
        memory.poisoned.clear_group(place.group);
      }
      write(to, kernel.dk, dk, kernel.data.forward.scale);
      write(to, kernel.dv, dv, 1.0f);
    }
    OCTAVO_DEVICE void write(const place_of_results& at, const tensor& to, const float (&x)[D / 2], float scale) const {
      const std::int64_t first =
          element_offset(to, kernel.data.forward.kv_docs, at.document, at.first + in_tile(0), at.head) +
          2 * place.quad_lane;
      const bool exists[2] = {in_tile(0) < at.tokens, in_tile(1) < at.tokens};
      const fragment_writer<D / 2> writer(to, first, exists);
      writer.write([&](int i) { return x[i] * scale; });
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
