// SPDX-License-Identifier: Apache-2.0
// The Hopper forward: a block takes 128 query rows of one head, and then the next ones that it draws. One thread of the
// first warpgroup brings key tiles by bulk copies; each of the other two takes 64 rows through
//
//     S = Q K^T        (FP8 product, d deep)            M' = max(M, ceil(max_j s))      a = 2^(M - M')
//     P^ = e4m3(2^8 2^(s - M')), packed in registers    T = P^ [V | 1]                  [O | l] = a [O | l] + T
//
// The tensor cores' sums keep 13 bits and truncate, so a product never runs over more than one tile of 128 keys: T
// starts from zero and is added in FP32, in the operation that multiplies by V's scale. Where M does not rise, a is 1 and
// nothing is multiplied by it. Ones beside V make the same product give the row sums of the rounded P, which l is.
// (`token` sums them in registers: there l wants each weight without the scale that was folded into it. `stale` sums
// unrounded ones.)
#pragma once

#include <octavo/backends/cuda/common/tile_work.hpp>
#include <octavo/backends/cuda/hopper/nonfinite.hpp>
#include <octavo/backends/cuda/hopper/scores.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

template <class Recipe, class Delta, int D>
struct forward_kernel {
  static constexpr const char* name = "hopper forward";
  using E = typename Recipe::element;
  static constexpr bool folds = folds_token_scales<Recipe>;
  /// Whether l comes from ones beside V.
  static constexpr bool sums_by_product = !folds && Delta::integer_maximum;
  static constexpr int extra_rows = sums_by_product ? ones_rows : 0, value_rows = D + extra_rows;
  /// V's rows in the first of the two products with it: registers hold one beside the scores and O.
  static constexpr int first_rows = D > 64 ? 64 : value_rows, rest_rows = value_rows - first_rows;
  /// `token` at d 128 has no registers for a second loop, nor for factors that wait for the next visit.
  static constexpr bool has_plain_loop = !folds || D <= 64, rescales_last = !has_plain_loop;
  static constexpr int readers = 2, threads = (1 + readers) * ptx::group_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 6 : 4;
  static constexpr int places = 2;  ///< for tiles of rows

  struct stage {
    alignas(matrix_bytes) std::uint8_t k[tile_tokens * D], v[tile_tokens * value_rows];
    float k_scale[scales_per_tile<Recipe>],
        v_factor[scales_per_tile<Recipe>];  ///< of V: token its fold, tile its scale
    /// V's, which come twice: with K, when it is chosen what loop goes on; with V, when it is noted what they spoil.
    std::uint32_t nonfinite_ahead[4], nonfinite[4];
  };
  struct shared {
    alignas(matrix_bytes) std::uint8_t q[places][tile_tokens * D];
    stage ring_of[stages];
    float q_scale[places][scales_per_tile<Recipe>];
    drawn_tiles<places> drawn;
    ring<stages> keys, values;
    poisoned_results<D> poisoned;
  };
  static constexpr int shared_bytes = sizeof(shared);

  pass_data<Recipe> data;
  forward_outputs out;
  image_operand q, k, v;
  work_list list{};  ///< of query tiles

  std::int64_t blocks(int multiprocessors) const { return list.blocks(multiprocessors); }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    if (ptx::thread_index() == 0) {
      memory.drawn.at.init(readers * 4);
      memory.keys.init(readers * 4);
      memory.values.init(readers * 4);
      ptx::fence_barriers();
    }
    memory.poisoned.clear(threads);
    ptx::sync_block();
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<24>();
      if (ptx::thread_index() == 0) copy_tiles(memory);
    } else {
      ptx::raise_registers<240>();
      read_tiles(memory);
    }
  }

 private:
  /// The producer: for every tile of rows that it draws Q, then a stage per key tile.
  OCTAVO_DEVICE void copy_tiles(shared& memory) const {
    constexpr int factors = scales_per_tile<Recipe>, bytes = tile_tokens * D;
    ring_place<stages> place;
    memory.drawn.draw_all(
        list,
        [&](const tile_work& work, int to, ptx::shared_barrier& full) {
          full.arrive_expecting(memory.drawn.expected + factors * sizeof(float) + bytes);
          const std::int64_t from = work.image;
          ptx::bulk_load(memory.q_scale[to], q.scale + from * factors, factors * sizeof(float), full);
          ptx::bulk_load(memory.q[to], q.images.rows + from * bytes, bytes, full);
        },
        [&](const tile_work& work) {
          OCTAVO_NO_UNROLL
          for (int t = work.seen.first; t < work.seen.last; ++t, place.advance())
            start_keys(memory, std::int64_t{work.first_seen} + t, place);
        });
  }
  OCTAVO_DEVICE void start_keys(shared& memory, std::int64_t from, const ring_place<stages>& place) const {
    constexpr int factors = scales_per_tile<Recipe>;
    stage& to = memory.ring_of[place.stage];
    place.wait_empty(memory.keys);
    ptx::shared_barrier& k_full = memory.keys.full[place.stage];
    k_full.arrive_expecting(sizeof to.k + sizeof to.k_scale + sizeof to.v_factor + sizeof to.nonfinite_ahead);
    ptx::bulk_load(to.k, k.images.rows + from * sizeof to.k, sizeof to.k, k_full);
    ptx::bulk_load(to.k_scale, k.scale + from * factors, sizeof to.k_scale, k_full);
    ptx::bulk_load(to.v_factor, (folds ? v.fold : v.scale) + from * factors, sizeof to.v_factor, k_full);
    ptx::bulk_load(to.nonfinite_ahead, v.images.nonfinite + from * 4, sizeof to.nonfinite_ahead, k_full);
    place.wait_empty(memory.values);
    ptx::shared_barrier& v_full = memory.values.full[place.stage];
    v_full.arrive_expecting(sizeof to.v + sizeof to.nonfinite);
    ptx::bulk_load(to.v, v.images.columns + from * sizeof to.v, sizeof to.v, v_full);
    ptx::bulk_load(to.nonfinite, v.images.nonfinite + from * 4, sizeof to.nonfinite, v_full);
  }

  /// The readers: each warpgroup its half of every tile that was drawn.
  OCTAVO_DEVICE void read_tiles(shared& memory) const {
    const lane_place lane = lane_place::here();
    const turns turn{lane.group};
    ring_place<stages> now;
    turn.begin();
    memory.drawn.visit_all([&](const tile_work& work, const ring_place<places>& drawn) {
      consumer{*this, memory, work, drawn.stage, turn, lane}.run(now);
      drawn.release(memory.drawn.at, lane.lane);
    });
    turn.end();
  }

  /// One warpgroup's 64 rows.
  struct consumer {
    const forward_kernel& kernel;
    shared& memory;
    const tile_work& work;
    const int drawn;  ///< its place
    const turns& turn;
    const lane_place& place;

    int first_row = 64 * (place.group - 1);  ///< of the group within the tile
    row_keys seen_by_all = work.seen_by_all[place.group - 1];
    ptx::matrix queries =
        ptx::matrix::at(memory.q[0] + first_row * chunk_bytes, tile_tokens).behind(drawn, sizeof memory.q[0]);
    ptx::matrix first_keys = ptx::matrix::at(memory.ring_of[0].k, tile_tokens);  ///< of the first stage
    ptx::matrix first_values = ptx::matrix::at(memory.ring_of[0].v, value_rows);
    float o[value_rows / 2] = {};  ///< sums so far relative to 2^m; with the row sums behind them
    float l[2] = {0, 0}, m[2] = {0, 0};
    /// Scores up to here leave m as it is: m; -inf for a row that has seen no key, and where m is large.
    float settled_up_to[2] = {minus_infinity, minus_infinity};
    bool no_m_below_zero = false;  ///< nor -inf above, among the warp's rows

    OCTAVO_DEVICE void run(ring_place<stages>& now) {
      const tile_run seen = work.seen;
      if (seen.last == seen.first) return finish();
      const score_map<functions> map = score_map<functions>::of(kernel.data.scale, kernel.data.problem.softcap);
      const score_rules rules{{work.sees(row(0)), work.sees(row(1))},
                              map,
                              {query_scale(0) * map.scale_log2, query_scale(1) * map.scale_log2}};
      tile_scores scores;
      now.wait_full(memory.keys);
      start_scores(scores, rules, now);
      finish_product<0>(scores.s);
      tile_state state = take_scores<false>(scores, rules, seen.first, now);
      int t = seen.first;
      for (;;) {
        if (!state.small) round_large(scores.s, scores.factor, m);
        state.small = true;
        // Nearly all of the time is spent in this loop; what few tiles need is not in it, since instructions that are
        // jumped over are fetched late.
        while (has_plain_loop && state.small && state.finite && t + 1 < seen.last && is_plain(t + 1, rules))
          state = visit<next_tile::plain>(scores, state, rules, t++, now);
        if (!state.small) continue;
        if (t + 1 == seen.last) break;
        state = visit<next_tile::any>(scores, state, rules, t++, now);
      }
      visit<next_tile::none>(scores, state, rules, t, now);
      finish();
    }

   private:
    /// What makes scores of products.
    struct score_rules {
      row_keys keys[2];
      score_map<functions> map;
      float q_scale[2];  ///< times the scale of the softmax
    };
    /// Of a tile: s[i] * factor[row] is a score; `token` adds the fold of its key. alpha: see raise_exponent.
    struct tile_scores {
      float s[tile_tokens / 2], factor[2], alpha[2];
    };
    /// Of the tile whose scores have been taken, by warp: whether it left every m as it was; whether no m is large (else the
    /// scores are to be rounded); whether V is finite.
    struct tile_state {
      bool settled = true, small = true, finite = true;
    };
    /// plain: every row sees all of the tile's keys, and nothing caps scores.
    enum class next_tile { none, plain, any };

    OCTAVO_DEVICE bool is_plain(int t, const score_rules& rules) const {
      return holds_tile(seen_by_all, t) && rules.map.softcap == 0;
    }

    /// One key tile, whose scores are there: its weights meet V, in two halves, and the next tile's scores are made
    /// between them. A product is added while the next one is computed; none runs from one visit to the next.
    template <next_tile next>
    OCTAVO_DEVICE tile_state visit(tile_scores& scores, tile_state state, const score_rules& rules, int t,
                                   ring_place<stages>& now) {
      constexpr bool has_next = next != next_tile::none, plain = next == next_tile::plain;
      const ring_place<stages> at = now;
      now.advance();
      const stage& from = memory.ring_of[at.stage];
      const float v_scale = folds ? 1.0f : from.v_factor[0];
      float part[first_rows / 2], rest[rest_rows / 2 + 1];
      std::uint32_t weights[tile_tokens / 32][4];

      if (!rescales_last && !state.settled) rescale(scores.alpha);
      exponentials(scores, from, weights);
      at.release(memory.keys, place.lane);  // the factors of `token` came with K
      at.wait_full(memory.values);
      if constexpr (!plain)
        if (!state.finite) memory.poisoned.note(weights, place, first_row, from.v, value_rows, 0, from.nonfinite);
      const ptx::matrix values = first_values.behind(at.stage, sizeof(stage));
      if constexpr (has_next) {
        now.wait_full(memory.keys);
        turn.take();
      }
      start_product(part, weights, values);
      if constexpr (has_next) start_scores(scores, rules, now);
      finish_product<(has_next ? 1 : 0)>(part);
      add<0>(part, v_scale);
      if constexpr (rest_rows > 0)
        start_product(part_of<0, rest_rows / 2>(rest), weights, values.behind(first_rows, chunk_bytes));
      if constexpr (has_next) {
        finish_product<(rest_rows > 0 ? 1 : 0)>(scores.s);
        state = take_scores<plain>(scores, rules, t + 1, now);
        turn.pass();
      }
      if constexpr (rest_rows > 0) {
        finish_product<0>(part_of<0, rest_rows / 2>(rest));
        add<first_rows>(part_of<0, rest_rows / 2>(rest), v_scale);
      }
      if (rescales_last && has_next && !state.settled) rescale(scores.alpha);
      at.release(memory.values, place.lane);
      // The same in all lanes, as descriptors must be: told so, the compiler keeps it in a uniform register.
      now.stage = ptx::uniform(now.stage);
      return state;
    }

    /// Starts the product for a tile's scores; its scales, too, have arrived.
    OCTAVO_DEVICE void start_scores(tile_scores& to, const score_rules& rules, const ring_place<stages>& at) const {
      const float k_scale = folds ? 1.0f : memory.ring_of[at.stage].k_scale[0];
      start_product<D>(to.s, queries, first_keys.behind(at.stage, sizeof(stage)));
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) to.factor[half] = at_least_tiny(rules.q_scale[half] * k_scale);
    }
    /// Makes scores of tile t's products; raises m where one of them is above it.
    template <bool plain>
    OCTAVO_DEVICE tile_state take_scores(tile_scores& to, const score_rules& rules, int t,
                                         const ring_place<stages>& at) {
      const stage& from = memory.ring_of[at.stage];
      scale_keys<folds>(to.s, from.k_scale, place.quad_lane);
      if constexpr (!plain) {
        cap_scores(to.s, to.factor, rules.map);
        if (!holds_tile(seen_by_all, t)) forbid(to.s, minus_infinity, rules.keys, t * tile_tokens, place.quad_lane);
      }
      float high[2];
      if (plain && !folds && no_m_below_zero) [[likely]]
        row_maximum_of_bits(to.s, high);
      else
        find_maximum(to, from, high);
      if constexpr (!folds) high[0] *= to.factor[0], high[1] *= to.factor[1];
      const bool settled = !ptx::any_in_warp(high[0] > settled_up_to[0] || high[1] > settled_up_to[1]);
      if (!settled) {
        if constexpr (folds)  // a maximum of rounded products, as the scores under a large one are
          if (is_large(high[0]) || is_large(high[1])) {
            round_large(to.s, to.factor, high);
            find_maximum(to, from, high);
          }
        raise_exponent(high, to.alpha);
      }
      return {settled, settled || !ptx::any_in_warp(is_large(m[0]) || is_large(m[1])),
              any_bit(from.nonfinite_ahead) == 0};
    }
    OCTAVO_DEVICE void find_maximum(const tile_scores& of, const stage& from, float (&high)[2]) const {
      row_maximum<tile_tokens / 2>(
          high, [&](int i) { return folds ? fmaf(of.s[i], of.factor[row_half(i)], fold(from, i)) : of.s[i]; });
    }
    /// m of the highest scores of rows, of which a lane knows those of its columns; few tiles have one above those before.
    /// alpha: what the sums so far are to be multiplied by.
    OCTAVO_DEVICE void raise_exponent(const float (&high)[2], float (&alpha)[2]) {
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const float before = is_large(m[half]) ? m[half] : settled_up_to[half];
        const float maximum = fmaxf(before, max_over_quad(high[half]));
        const float m_new = shared_exponent<Delta>(maximum);
        if constexpr (Delta::integer_maximum)
          alpha[half] = negative_power_of_two(fminf(m_new - m[half], 127.0f));
        else
          alpha[half] = functions::exp2(m[half] - m_new);
        if (before == minus_infinity) alpha[half] = 0;  // nothing summed yet: nothing to rescale
        m[half] = m_new;
        settled_up_to[half] = is_large(m_new) ? minus_infinity : maximum == minus_infinity ? maximum : m_new;
      }
      no_m_below_zero = !ptx::any_in_warp(settled_up_to[0] < 0 || settled_up_to[1] < 0);
    }
    OCTAVO_DEVICE void rescale(const float (&alpha)[2]) {
      l[0] *= alpha[0], l[1] *= alpha[1];
      OCTAVO_UNROLL
      for (int i = 0; i < value_rows / 2; ++i) o[i] *= alpha[row_half(i)];
    }

    /// The thread's rows, counted from the first of the tile and of the document.
    OCTAVO_DEVICE int in_tile(int half) const { return first_row + place.row + 8 * half; }
    OCTAVO_DEVICE int row(int half) const { return work.first + in_tile(half); }
    OCTAVO_DEVICE bool exists(int half) const { return in_tile(half) < work.tokens; }
    OCTAVO_DEVICE float query_scale(int half) const { return memory.q_scale[drawn][folds ? in_tile(half) : 0]; }

    OCTAVO_DEVICE float fold(const stage& from, int i) const {
      return folds ? from.v_factor[column(i, place.quad_lane)] : 0.0f;
    }

    /// P^ in units of 1 / p_scale, packed for the product with V; l where it is not part of that.
    OCTAVO_DEVICE void exponentials(tile_scores& of, const stage& from, std::uint32_t (&weights)[tile_tokens / 32][4]) {
      constexpr float log2_p_scale = 8;
      static_assert(p_scale<E> == 256.0f);
      const float shift[2] = {log2_p_scale - m[0], log2_p_scale - m[1]};
      OCTAVO_UNROLL
      for (int i = 0; i < tile_tokens / 2; ++i)
        of.s[i] = functions::exp2(
            fmaf(of.s[i], of.factor[row_half(i)], folds ? shift[row_half(i)] + fold(from, i) : shift[row_half(i)]));
      pack_rows<E>(of.s, weights);
      if constexpr (!sums_by_product) add_weights(of.s, from, weights);
    }
    /// l as sums of weights: unrounded ones (stale), or rounded ones without the scales of V.
    OCTAVO_DEVICE void add_weights(const float (&s)[tile_tokens / 2], const stage& from,
                                   const std::uint32_t (&weights)[tile_tokens / 32][4]) {
      float sum[2] = {0, 0};
      bool zero = false;  // whether a key of this thread has a V of zeros
      OCTAVO_UNROLL
      for (int k = 0; k < tile_tokens / 32; ++k) {
        OCTAVO_UNROLL
        for (int r = 0; r < 4; ++r) {
          float rounded[4];
          if constexpr (Delta::integer_maximum) ptx::unpack_e4m3(weights[k][r], rounded);
          OCTAVO_UNROLL
          for (int e = 0; e < 4; ++e) {
            const int i = 16 * k + 8 * (r / 2) + 4 * (e / 2) + 2 * (r % 2) + e % 2;
            if constexpr (!Delta::integer_maximum) rounded[e] = s[i];
            sum[r % 2] = fmaf(rounded[e], unfold(from, i), sum[r % 2]);
            if constexpr (folds) zero |= fold(from, i) == fold_of_zero;
          }
        }
      }
      if constexpr (folds && Delta::integer_maximum)
        if (ptx::any_in_warp(zero)) add_zero_tokens(s, from, weights, sum);
      l[0] += sum_over_quad(sum[0]);
      l[1] += sum_over_quad(sum[1]);
    }
    /// A key whose V is zero adds its unrounded weight: its scale, 1, says nothing of how its weight should be rounded.
    OCTAVO_DEVICE void add_zero_tokens(const float (&s)[tile_tokens / 2], const stage& from,
                                       const std::uint32_t (&weights)[tile_tokens / 32][4], float (&sum)[2]) const {
      OCTAVO_UNROLL
      for (int i = 0; i < tile_tokens / 2; ++i)
        if (fold(from, i) == fold_of_zero)
          sum[row_half(i)] +=
              (s[i] - e4m3::decode(static_cast<std::uint8_t>(packed_byte(weights, i)))) * unfold(from, i);
    }
    /// 1 / sv of the key of element i; 1 where it is not folded.
    OCTAVO_DEVICE float unfold(const stage& from, int i) const {
      return folds ? negative_power_of_two(fold(from, i)) : 1.0f;
    }

    /// Adds a product over rows [first, first + 2 R) of V's image: channels, then ones.
    template <int first, int R>
    OCTAVO_DEVICE void add(const float (&part)[R], float v_scale) {
      OCTAVO_UNROLL
      for (int i = 0; i < R; ++i) {
        const int at = first / 2 + i;
        o[at] = at < D / 2 ? fmaf(part[i], v_scale, o[at]) : o[at] + part[i];
      }
    }

    /// O / l, LSE, M and l. The sink joins the sum here: it takes no part in M.
    OCTAVO_DEVICE void finish() {
      const pass_data<Recipe>& d = kernel.data;
      const forward_outputs& to = kernel.out;
      float reciprocal[2];
      OCTAVO_UNROLL
      for (int half = 0; half < 2; ++half) {
        const std::int64_t row_of_all = d.statistic(work.document, work.head, row(half));
        const float keys = (sums_by_product ? o[D / 2 + 2 * half] : l[half]) * (1.0f / p_scale<E>);
        const float sink = exists(half) ? d.sink_log2(work.document, work.head, row_of_all) : minus_infinity;
        const float sum = keys + sink_weight<functions>(sink, m[half]);
        reciprocal[half] = reciprocal_or_zero(sum) * (1.0f / p_scale<E>);
        if (!exists(half) || place.quad_lane != 0) continue;
        if (to.lse != nullptr)
          to.lse[row_of_all] = log_sum_exp(m[half], keys, sink) + (d.q_shift != nullptr ? d.q_shift[row_of_all] : 0.0f);
        if (to.m != nullptr) to.m[row_of_all] = m[half];
        if (to.l != nullptr) to.l[row_of_all] = sum;
      }
      drop_poisoned();
      const bool both[2] = {exists(0), exists(1)};
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; ++i) o[i] *= reciprocal[row_half(i)];
      const fragment_writer<D / 2> write_o(to.o, first_element(to.o), both);
      write_o.write([&](int i) { return o[i]; });
      if (!d.problem.o_residual) [[likely]]
        return;
      leave_residual(to.o.type);
      const fragment_writer<D / 2> write_residual(to.o_residual, first_element(to.o_residual), both);
      write_residual.write([&](int i) { return o[i]; });
    }
    /// What the rounding of O left.
    OCTAVO_DEVICE void leave_residual(dtype type) {
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; i += 2) {
        float a = o[i], b = o[i + 1];  // in f32 nothing is left
        if (type == dtype::bf16) {
          const std::uint32_t word = ptx::pack_bf16(a, b);
          a = detail::bit_cast<float>(word << 16), b = detail::bit_cast<float>(word & 0xffff0000u);
        } else if (type == dtype::f16) {
          ptx::unpack_f16(ptx::pack_f16(a, b), a, b);
        }
        o[i] -= a, o[i + 1] -= b;
      }
    }
    /// Where the thread's first row and column stand.
    OCTAVO_DEVICE std::int64_t first_element(const tensor& t) const {
      return element_offset(t, kernel.data.q_docs, work.document, row(0), work.head) + 2 * place.quad_lane;
    }
    /// Rows that a NaN of V reached; the whole group notes before any of it looks.
    OCTAVO_DEVICE void drop_poisoned() {
      ptx::sync_named(place.group, ptx::group_threads);
      if (memory.poisoned.any[place.group - 1] == 0) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int i = 0; i < D / 2; ++i)
        if (memory.poisoned.holds(in_tile(row_half(i)), column(i, place.quad_lane))) o[i] = detail::float_nan();
      memory.poisoned.clear_group(place.group);
    }
  };
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
