// SPDX-License-Identifier: Apache-2.0
// The forward on lanes: a block takes 128 query rows of one head, every warp its own rows, and all walk over the keys step
// by step, the next step's operands under way:
//
//     S = Q K^T        (FP8 product, d deep)            M' = max(M, ceil(max_j s))      a = 2^(M - M')
//     P^ = e4m3(2^8 2^(s - M')), packed in registers    T = P^ [V | 1]                  [O | l] = a [O | l] + T
//
// Where units keep fewer digits of a longer sum, a product with V runs over one step and is then added in FP32, as l always
// is. A right operand of ones, made in registers, gives the row sums of the rounded P, which l is. (`token` sums them in
// registers: there l wants each weight without the scale that was folded into it. `stale` sums unrounded ones.)
#pragma once

#include <octavo/algorithm/pass_data.hpp>
#include <octavo/backends/simt/nonfinite.hpp>
#include <octavo/backends/simt/owned_rows.hpp>
#include <octavo/backends/simt/results.hpp>
#include <octavo/backends/simt/scores.hpp>
#include <octavo/backends/simt/stage_copy.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, class Delta, int D>
struct forward_kernel {
  using machine = M;
  static constexpr const char* name = "simt forward";
  using E = typename Recipe::element;
  using atom = typename M::template atom<E, E>;
  static constexpr schedule plan = M::plan(work::forward, D, Recipe::scale_per);
  static constexpr int step = plan.step, stages = plan.stages, row_tiles = plan.row_tiles;
  static constexpr bool folds = folds_token_scales<Recipe>, scaled = scales_in_atom<Recipe>;
  /// Whether l comes from ones beside V.
  static constexpr bool sums_by_product = !folds && Delta::integer_maximum;
  static constexpr int threads = tile_tokens / (row_tiles * atom::size) * M::lanes;
  static constexpr int blocks_per_sm = plan.blocks_per_sm;
  static constexpr int factors = step_factors<Recipe, step>, factor_bytes = step_factor_bytes<Recipe, step>;
  static constexpr int operand_bytes = image_bytes<M, scaled>(step, D);

  using scores = sums_of<M, row_tiles, step>;
  using output = sums_of<M, row_tiles, D>;
  using weights = packed_rows<M, row_tiles, step, scaled>;
  using place_type = lane_place<M, row_tiles>;
  using owned = owned_rows<M, scaled, row_tiles, D, threads, plan.own(scaled)>;

  struct stage {
    alignas(16) std::uint8_t k[operand_bytes], v[operand_bytes];
    float k_scale[factors], v_factor[factors];  ///< of V: token its fold, tile its scale
    std::uint32_t nonfinite[4];
  };
  struct shared {
    typename owned::storage q;
    stage ring[stages];
    row_keys keys[tile_tokens];
    poisoned_results<M, D> poisoned;
  };
  static constexpr int shared_bytes = sizeof(shared);
  using copies = stage_copy<M, threads, operand_bytes, operand_bytes, factor_bytes, factor_bytes, 16>;

  pass_data<Recipe> data;
  forward_outputs out;
  image_operand q, k, v;

  std::int64_t blocks() const { return data.q_docs.slots(tile_tokens) * data.problem.h_q; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(M::shared());
    // Heads one after another, so that blocks that run together share keys; the longest rows of a causal mask first.
    const std::int64_t slots = q.slots, h = M::block_index() / slots;
    const std::int64_t slot = slots - 1 - M::block_index() % slots;
    const token_tile tile = data.q_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    memory.poisoned.clear(threads);
    const head_of_document at = data.head(tile.document, h);
    const std::int64_t first_kv_slot = at.kv.length == 0 ? 0 : data.kv_docs.first_slot(at.document, tile_tokens);
    rows_of_warp rows{*this, memory, at, tile, data.ranges(at), k.tile(at.h_kv, first_kv_slot), q.tile(h, slot)};
    rows.run();
  }

 private:
  struct rows_of_warp {
    const forward_kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& tile;
    const key_ranges ranges;
    std::int64_t kv_tile, q_tile;  ///< the first key tile's image, and the rows' own

    place_type place = place_type::here();
    owned queries{};
    float o[output::elements] = {};  ///< raw sums so far relative to 2^m ...
    float o_unit = 1;                ///< ... and to this scale of V
    float l[scores::rows] = {};
    float m[scores::rows] = {};  ///< the running M; -inf where no key has come

    OCTAVO_DEVICE void run() {
      const tile_run all = visible_tiles::of(ranges, tile.first, tile.tokens, false, step).any;
      // Asked of the tile, not of `rows`: ptxas 13.0 makes "cut to 0...n, then equal to n?" one VIMNMX.RELU, whose answer
      // on an H200 is yes also where it is no.
      const bool all_rows = place.first_row + place.warp_rows <= tile.tokens;
      const int left = tile.tokens - place.first_row, rows = all_rows ? place.warp_rows : left < 0 ? 0 : left;
      const visible_tiles mine = visible_tiles::of(ranges, tile.first + place.first_row, rows, all_rows, step);
      const float scale_log2 = kernel.data.scale * log2_e;
      for (int row = M::thread_index(); row < tile_tokens; row += threads)
        memory.keys[row] = row_keys::of(ranges, tile.first + row);
      float q_scale[scores::rows];
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        q_scale[r] = kernel.q.template scale_of<Recipe>(q_tile, place.row(r)) * scale_log2 * atom::unit;
        m[r] = minus_infinity;
      }
      queries.template fetch<atom>(memory.q, kernel.q.images.rows + q_tile * image_bytes<M, scaled>(tile_tokens, D),
                                   place);
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
        if (mine.any.holds(u)) visit(u, memory.ring[slot], mine.whole.holds(u), q_scale);
        ahead.deliver();
        slot = slot + 1 == stages ? 0 : slot + 1;
      }
      M::template wait_transfers<0>();
      M::sync_block();  // all have noted what they poisoned
      finish();
    }

   private:
    OCTAVO_DEVICE void start_step(typename copies::transfer& t, int u, int slot) const {
      stage& to = memory.ring[slot];
      const step_of_tokens<M, Recipe, step> at_u(kv_tile, u);
      copies::start(t, copy_pair{to.k, at_u.in_image(kernel.k.images.rows, D)},
                    copy_pair{to.v, at_u.in_image(kernel.v.images.columns, D)},
                    copy_pair{to.k_scale, at_u.in_factors(kernel.k.scale)},
                    copy_pair{to.v_factor, at_u.in_factors(folds ? kernel.v.fold : kernel.v.scale)},
                    copy_pair{to.nonfinite, at_u.in_marks(kernel.v.images.nonfinite)});
    }

    /// One step of keys.
    OCTAVO_DEVICE void visit(int u, const stage& from, bool whole, const float (&q_scale)[scores::rows]) {
      float s[scores::elements], factor[scores::rows];
      multiply_rows<M, scaled, atom, scores, D>(s, queries, from.k, place.lane);
      const float k_scale = tile_scale<Recipe>(from.k_scale), v_scale = tile_scale<Recipe>(from.v_factor);
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) factor[r] = at_least_tiny(q_scale[r] * k_scale);
      finish_scores<M, scores, folds>(s, factor, from.k_scale + place.column, soft_scale::of(kernel.data));
      if (!whole) [[unlikely]]
        forbid<scores>(s, minus_infinity, memory.keys, place, u * step + place.column);
      float raised[scores::rows];
      raise_maximum(s, from, factor, raised);
      rescale(raised);
      weights p;
      exponentials(s, from, factor, p);
      if (any_bit(from.nonfinite) != 0) [[unlikely]]
        note(p, u, from);
      if constexpr (sums_by_product) add_row_sums(p);
      add_products(p, from, v_scale);
    }
    /// l += P^ 1 over the step, whose products begin at zero: few units keep FP32's digits of a sum over all keys.
    OCTAVO_DEVICE void add_row_sums(const weights& p) {
      const std::uint32_t one = M::template pack<E>(1, 1, 1, 1);
      lane_operand<M, scaled> ones;
      OCTAVO_UNROLL
      for (std::uint32_t& word : ones.words) word = one;
      ones.set_scale(scale_of_one);
      OCTAVO_UNROLL
      for (int t = 0; t < row_tiles; ++t) {
        float sums[atom::sums] = {};
        OCTAVO_UNROLL
        for (int j = 0; j < weights::depths; ++j) multiply<atom>(sums, p.of[t][j], ones);
        OCTAVO_UNROLL
        for (int i = 0; i < atom::sums; ++i)
          if (is_first_of_row(i)) l[t * image_layout<M>::row_slots + image_layout<M>::row_slot(i)] += sums[i];
      }
    }
    /// Whether accumulator i is the first of the lane's that stand in its row.
    OCTAVO_HD static constexpr bool is_first_of_row(int i) {
      for (int before = 0; before < i; ++before)
        if (image_layout<M>::row_slot(before) == image_layout<M>::row_slot(i)) return false;
      return true;
    }
    /// O += P^ V over the step.
    OCTAVO_DEVICE void add_products(const weights& p, const stage& from, float v_scale) {
      if constexpr (atom::long_sums)
        if (takes_unit(v_scale)) [[likely]] {
          add_columns<atom, output>(o, p, from.v, place.lane);
          return;
        }
      constexpr int part_sums = row_tiles * atom::sums;
      multiply_columns<atom, D, D>(p, from.v, 0, place.lane, [&](const float(&part)[part_sums], int c) {
        OCTAVO_UNROLL
        for (int i = 0; i < part_sums; ++i) {
          const int to = (i / atom::sums * output::atoms + c) * atom::sums + i % atom::sums;
          o[to] = fmaf(part[i], v_scale, o[to]);
        }
      });
    }
    /// Brings o to units of V's scale, by a power of two. Where the two are so far apart that o might overflow or vanish, it
    /// goes back to units of 1, and the products are multiplied.
    OCTAVO_DEVICE bool takes_unit(float v_scale) {
      if (!M::any_in_warp(v_scale != o_unit)) [[likely]]  // the same in all lanes, which the compiler is told so
        return true;
      const float ratio = o_unit / v_scale;
      const bool near = M::any_in_warp(ratio > 0x1p-60f && ratio < 0x1p60f);
      const float factor = near ? ratio : o_unit;
      OCTAVO_UNROLL
      for (float& x : o) x *= factor;
      o_unit = near ? v_scale : 1.0f;
      return near;
    }
    OCTAVO_DEVICE void note(const weights& p, int u, const stage& from) const {
      const step_of_tokens<M, Recipe, step> at_u(kv_tile, u);
      memory.poisoned.note(p, place, at_u.in_tile(u), from.nonfinite,
                           kernel.v.images.nonfinite_channels + at_u.tile * tile_tokens * (D / 32));
    }

    OCTAVO_DEVICE float fold(const stage& from, int i) const {
      return folds ? from.v_factor[place.column + scores::column(i)] : 0.0f;
    }

    /// The M that the running one becomes.
    OCTAVO_DEVICE void raise_maximum(float (&s)[scores::elements], const stage& from, float (&factor)[scores::rows],
                                     float (&raised)[scores::rows]) const {
      float high[scores::rows];
      find_maximum(s, from, factor, high);
      bool large = false;
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) large |= is_large(high[r]);
      if (large) [[unlikely]] {
        round_large<M, scores>(s, factor, high);
        find_maximum(s, from, factor, high);
      }
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        const float of_step = max_over_row<M>(high[r]);
        raised[r] = fmaxf(m[r], Delta::integer_maximum ? ceilf(of_step) : of_step);
      }
    }
    OCTAVO_DEVICE void find_maximum(const float (&s)[scores::elements], const stage& from,
                                    const float (&factor)[scores::rows], float (&high)[scores::rows]) const {
      row_maximum<scores>(high,
                          [&](int i) { return folds ? fmaf(s[i], factor[scores::row(i)], fold(from, i)) : s[i]; });
      if constexpr (!folds) {
        OCTAVO_UNROLL
        for (int r = 0; r < scores::rows; ++r) high[r] *= factor[r];
      }
    }
    /// M as everybody knows it: 0 for a row without keys.
    OCTAVO_DEVICE static float finite(float m) { return m == minus_infinity ? 0.0f : m; }
    /// The sums so far, relative to the new maximum.
    OCTAVO_DEVICE void rescale(const float (&raised)[scores::rows]) {
      float alpha[scores::rows];
      bool changed = false;
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        const bool empty = l[r] == 0;
        alpha[r] = empty ? 0.0f : M::exp2(m[r] - raised[r]);  // nothing summed yet: nothing to rescale
        m[r] = raised[r];
        l[r] *= alpha[r];
        changed |= alpha[r] != 1;
      }
      if (!M::any_in_warp(changed)) return;
      OCTAVO_UNROLL
      for (int i = 0; i < output::elements; ++i) o[i] *= alpha[output::row(i)];
    }

    /// P^ in units of 1 / p_scale, packed for the product with V; l where it is not part of that.
    OCTAVO_DEVICE void exponentials(float (&s)[scores::elements], const stage& from,
                                    const float (&factor)[scores::rows], weights& p) {
      constexpr float log2_p_scale = 8;
      static_assert(p_scale<E> == 256.0f);
      float shift[scores::rows];
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) shift[r] = log2_p_scale - finite(m[r]);
      OCTAVO_UNROLL
      for (int i = 0; i < scores::elements; ++i) {
        const int r = scores::row(i);
        s[i] = M::exp2(fmaf(s[i], factor[r], folds ? shift[r] + fold(from, i) : shift[r]));
      }
      p.template pack<E>(s);
      if constexpr (!sums_by_product) add_weights(s, from, p);
    }
    /// l as sums of weights: unrounded ones (stale), or rounded ones without the scales of V. A key whose V is zero adds
    /// its unrounded weight: its scale, 1, says nothing of how its weight should be rounded.
    OCTAVO_DEVICE void add_weights(const float (&s)[scores::elements], const stage& from, const weights& p) {
      float sum[scores::rows] = {};
      weights::each_word([&](int t, int j, int w) {
        float rounded[4];
        if constexpr (Delta::integer_maximum) M::template unpack<E>(p.of[t][j].words[w], rounded);
        OCTAVO_UNROLL
        for (int byte = 0; byte < 4; ++byte) {
          const int i = weights::element(t, j, w, byte), r = scores::row(i);
          const float exponent = fold(from, i);
          const float weight = !Delta::integer_maximum || (folds && exponent == fold_of_zero) ? s[i] : rounded[byte];
          sum[r] = fmaf(weight, folds ? negative_power_of_two(exponent) : 1.0f, sum[r]);
        }
      });
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) l[r] += sum_over_row<M>(sum[r]);
    }

    /// O / l, LSE, M and l. The sink joins the sum here: it takes no part in M.
    OCTAVO_DEVICE void finish() {
      const pass_data<Recipe>& d = kernel.data;
      const forward_outputs& to = kernel.out;
      const std::int64_t first = d.statistic(at.document, at.h_q, tile.first);
      float reciprocal[scores::rows];
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) {
        const std::int64_t row = first + place.row(r);
        const bool exists = place.row(r) < tile.tokens;
        m[r] = finite(m[r]);
        const float keys = (sums_by_product ? l[r] * atom::unit : l[r]) * (1.0f / p_scale<E>);
        const float sink = exists ? d.sink_log2(at.document, at.h_q, row) : minus_infinity;
        const float sum = keys + sink_weight<functions<M>>(sink, m[r]);
        reciprocal[r] = reciprocal_or_zero(sum) * (o_unit * atom::unit / p_scale<E>);
        if (!exists || !place.leads_row()) continue;
        if (to.lse != nullptr)
          to.lse[row] = log_sum_exp(m[r], keys, sink) + (d.q_shift != nullptr ? d.q_shift[row] : 0.0f);
        if (to.m != nullptr) to.m[row] = m[r];
        if (to.l != nullptr) to.l[row] = sum;
      }
      drop_poisoned();
      OCTAVO_UNROLL
      for (int i = 0; i < output::elements; ++i) o[i] *= reciprocal[output::row(i)];
      write(to.o);
      if (!d.problem.o_residual) [[likely]]
        return;
      leave_residual(to.o.type);
      write(to.o_residual);
    }
    OCTAVO_DEVICE void write(const tensor& to) const {
      const std::int64_t first = element_offset(to, kernel.data.q_docs, tile.document, tile.first, at.h_q);
      const result_writer<M, output> writer(to, first, place, tile.tokens, static_cast<int>(kernel.data.problem.d_v));
      writer.write([&](int i) { return o[i]; });
    }
    /// What the rounding of O left.
    OCTAVO_DEVICE void leave_residual(dtype type) {
      OCTAVO_UNROLL
      for (int i = 0; i < output::elements; i += 2) {
        float a = o[i], b = o[i + 1];  // in f32 nothing is left
        if (type == dtype::bf16) {
          const std::uint32_t word = M::pack_bf16(a, b);
          a = detail::bit_cast<float>(word << 16), b = detail::bit_cast<float>(word & 0xffff0000u);
        } else if (type == dtype::f16) {
          M::unpack_f16(M::pack_f16(a, b), a, b);
        }
        o[i] -= a, o[i + 1] -= b;
      }
    }
    /// Rows that a NaN of V reached.
    OCTAVO_DEVICE void drop_poisoned() {
      if (memory.poisoned.any[0] == 0) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int i = 0; i < output::elements; ++i)
        if (memory.poisoned.holds(place.row(output::row(i)), place.column + output::column(i)))
          o[i] = detail::float_nan();
    }
  };
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
