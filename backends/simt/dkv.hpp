// SPDX-License-Identifier: Apache-2.0
// dK and dV on lanes: a block takes 128 keys of one head, every warp its own, and walks over the queries that see them step
// by step, for every query head of their group:
//
//     S^T = K Q^T     dP^T = V dO^T     P^T = 2^(s - exponent)     dS^T = P^T ((dP - c) - (delta - c))
//     dV += quant(P^T) dO               dK += quant(dS^T) Q        quantised per key and step of queries (mx32: 32)
//
// The transposed scores have keys in rows, so that P^T and dS^T go from registers into the second products as they are,
// and dK and dV stay in registers for the whole walk: grouped heads need no reduction, and no order is left to chance.
// Where registers do not hold both for all channels, `parts` blocks share the channels and each makes S and dP for itself;
// or, `paired`, two warps share keys: one makes S, P and dV, the other dP, dS and dK. P goes from the first to the second in
// shared memory. The second is a step behind, so that the one barrier of a step is all that they wait for.
#pragma once

#include <octavo/backends/simt/handed_on.hpp>
#include <octavo/backends/simt/nonfinite.hpp>
#include <octavo/backends/simt/results.hpp>
#include <octavo/backends/simt/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, class Recipe, class Delta, int D>
struct dkv_kernel {
  using machine = M;
  static constexpr const char* name = "simt dK dV";
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  using score_atom = typename M::template atom<E, E>;
  using dp_atom = typename M::template atom<E, G>;
  using dv_atom = typename M::template atom<E, G>;
  using dk_atom = typename M::template atom<G, E>;
  static constexpr schedule plan = M::plan(work::dkv, D, Recipe::scale_per);
  static constexpr int step = plan.step, stages = plan.stages, row_tiles = plan.row_tiles, parts = plan.parts;
  static constexpr bool paired = plan.paired;
  static_assert(!paired || plan.rows_in_registers, "of K and V a warp of a pair needs one, and keeps it for itself");
  static constexpr int part_channels = D / parts;  ///< of dK and dV in a block
  static constexpr bool folds = folds_token_scales<Recipe>, scaled = scales_in_atom<Recipe>;
  static constexpr int threads_of_keys = tile_tokens / (row_tiles * score_atom::size) * M::lanes;
  static constexpr int threads = threads_of_keys * (paired ? 2 : 1);
  static constexpr int slots = stages + (paired ? 1 : 0);  ///< of the ring: the second warps' step is there, too
  static constexpr int blocks_per_sm = plan.blocks_per_sm;
  static constexpr int factors = step_factors<Recipe, step>, factor_bytes = step_factor_bytes<Recipe, step>;
  static constexpr int operand_bytes = image_bytes<M, scaled>(step, D);

  using scores = sums_of<M, row_tiles, step>;
  using output = sums_of<M, row_tiles, part_channels>;
  using weights = packed_rows<M, row_tiles, step, scaled>;
  using place_type = lane_place<M, row_tiles>;
  using owned = owned_rows<M, scaled, row_tiles, D, threads, plan.own(scaled)>;

  struct stage {
    alignas(16) std::uint8_t q[operand_bytes], q_columns[operand_bytes], dout[operand_bytes],
        dout_columns[operand_bytes];
    float exponent[step], shift[step], delta[step], weight[step];  ///< of row_term_tile
    std::uint32_t delta_nonfinite[4], special[4];
    float q_scale[factors], do_scale[factors];
    std::uint32_t nonfinite[4];
  };
  struct nothing {};
  struct shared {
    std::conditional_t<paired, nothing, typename owned::storage> k, v;
    stage ring[slots];
    handed_on<M, scores::elements, paired ? threads_of_keys : 0> handed;
    row_keys queries[tile_tokens];                                        ///< that see each key
    float k_scale[tile_tokens], v_scale[tile_tokens], fold[tile_tokens];  ///< of each key; `tile`: of the first for all
    poisoned_results<M, D> poisoned;
  };
  static constexpr int shared_bytes = sizeof(shared);
  static constexpr int local_bytes =
      plan.own(scaled) == own_rows::converted_in_local ? threads * int{sizeof(typename owned::storage)} : 0;
  using copies = stage_copy<M, threads, operand_bytes, operand_bytes, operand_bytes, operand_bytes, step * 4, step * 4,
                            step * 4, step * 4, 32, factor_bytes, factor_bytes, 16>;

  backward_data<Recipe> data;
  image_operand q, k, v, dout;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots of queries]
  tensor dk, dv;

  std::int64_t blocks() const { return data.forward.kv_docs.slots(tile_tokens) * data.forward.problem.h_kv * parts; }

  OCTAVO_DEVICE void operator()() const {
    const std::int64_t block = M::block_index() / parts, h_kv = block / k.slots, slot = block % k.slots;
    const token_tile tile = data.forward.kv_docs.tile_at(slot, tile_tokens);
    if (tile.tokens == 0) return;
    std::conditional_t<paired, typename owned::storage, nothing> own;  // of the thread
    keys_of_warp keys(*this, *reinterpret_cast<shared*>(M::shared()), tile, h_kv, slot);
    keys.walk(own);
    keys.finish();
  }

 private:
  class keys_of_warp {
   public:
    OCTAVO_DEVICE keys_of_warp(const dkv_kernel& of, shared& in, const token_tile& t, std::int64_t h_kv,
                               std::int64_t slot)
        : kernel(of),
          memory(in),
          tile(t),
          at(of.data.forward.head(t.document, h_kv * of.data.forward.problem.group())),
          kv_tile(of.k.tile(h_kv, slot)),
          first_q_slot(at.q.length == 0 ? 0 : of.data.forward.q_docs.first_slot(t.document, tile_tokens)),
          place(place_type::of_thread(paired ? M::thread_index() % threads_of_keys : M::thread_index())),
          first_channel(parts == 1 ? 0 : static_cast<int>(M::block_index() % parts) * part_channels),
          scale_log2(of.data.forward.scale * log2_e),
          v_nonfinite(any_bit(of.v.images.nonfinite + kv_tile * 4)) {}

    template <class Own>
    OCTAVO_DEVICE void walk(Own& own) {
      const pass_data<Recipe>& d = kernel.data.forward;
      memory.poisoned.clear(threads);
      const key_ranges ranges = d.ranges(at);
      for (int key = M::thread_index(); key < tile_tokens; key += threads) {
        memory.queries[key] = queries_of(ranges, key);
        memory.k_scale[key] = kernel.k.template scale_of<Recipe>(kv_tile, key);
        memory.v_scale[key] = kernel.v.template scale_of<Recipe>(kv_tile, key) * dp_atom::unit;
        memory.fold[key] = folds && Delta::reuses_forward_p ? kernel.v.fold[kv_tile * tile_tokens + key] : 0.0f;
      }
      const run_of_queries all = queries_of_run(ranges, 0, tile_tokens);
      const run_of_queries mine = queries_of_run(ranges, place.first_row, place.warp_rows);
      const std::int64_t bytes = kv_tile * image_bytes<M, scaled>(tile_tokens, D);
      if constexpr (paired) {
        rows_.template fetch<score_atom>(own, (makes_p() ? kernel.k : kernel.v).images.rows + bytes, place);
      } else {
        rows_.template fetch<score_atom>(memory.k, kernel.k.images.rows + bytes, place);
        values_.template fetch<dp_atom>(memory.v, kernel.v.images.rows + bytes, place);
      }

      const int first_step = all.any.first / step, last_step = (all.any.last + step - 1) / step;
      const std::int64_t first_head = at.h_kv * d.problem.group(), last_head = first_head + d.problem.group();
      step_place ahead_at{first_head, first_step};
      const auto more = [&] { return first_step < last_step && ahead_at.h < last_head; };
      const auto advance = [&](step_place& x) {
        if (++x.u < last_step) return;
        x.u = first_step;
        ++x.h;
      };
      OCTAVO_UNROLL
      for (int s = 0; s < stages - 1; ++s) {
        typename copies::transfer ahead;
        if (more()) {
          start_step(ahead, ahead_at, s);
          advance(ahead_at);
        }
        ahead.deliver();
      }
      int slot = 0;
      if constexpr (paired) {
        // Of a pair one warp looks at `here`, the other at the step before. One past the last step is {last_head, first_step}.
        step_place behind{first_head, first_step};
        int slot_behind = 0, buffer = 0;
        bool first_turn = true;
        const auto goes_on = [&](const step_place& x) {
          return x.h < last_head || (x.h == last_head && x.u == first_step);
        };
        OCTAVO_NO_UNROLL
        for (step_place here = behind; first_step < last_step && goes_on(here); advance(here)) {
          M::template wait_transfers<stages - 2>();
          M::sync_block();
          typename copies::transfer ahead;
          if (more()) {
            start_step(ahead, ahead_at, slot + stages - 1 < slots ? slot + stages - 1 : slot + stages - 1 - slots);
            advance(ahead_at);
          }
          const step_place& at_step = makes_p() ? here : behind;
          const int first = at_step.u * step, last = first + step;
          const bool has_step = makes_p() ? here.h < last_head : !first_turn;
          if (has_step && first < mine.any.last && last > mine.any.first)
            visit(at_step, memory.ring[makes_p() ? slot : slot_behind], makes_p() ? buffer : buffer ^ 1,
                  first >= mine.whole.first && last <= mine.whole.last);
          ahead.deliver();
          behind = here;
          slot_behind = slot;
          slot = slot + 1 == slots ? 0 : slot + 1;
          buffer ^= 1;
          first_turn = false;
        }
      } else if (first_step < last_step) {
        OCTAVO_NO_UNROLL
        for (step_place here{first_head, first_step}; here.h < last_head; advance(here)) {
          M::template wait_transfers<stages - 2>();
          M::sync_block();
          typename copies::transfer ahead;
          if (more()) {
            start_step(ahead, ahead_at, slot == 0 ? stages - 1 : slot - 1);
            advance(ahead_at);
          }
          const int first = here.u * step, last = first + step;
          if (first < mine.any.last && last > mine.any.first)
            visit(here, memory.ring[slot], 0, first >= mine.whole.first && last <= mine.whole.last);
          ahead.deliver();
          slot = slot + 1 == stages ? 0 : slot + 1;
        }
      }
      M::template wait_transfers<0>();
      M::sync_block();  // all have noted what they poisoned
    }

    OCTAVO_DEVICE void finish() {
      if (makes_p() && memory.poisoned.any[0] != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < output::elements; ++i)
          if (memory.poisoned.holds(place.row(output::row(i)), first_channel + place.column + output::column(i)))
            dv()[i] = detail::float_nan();
      }
      const problem& p = kernel.data.forward.problem;
      const float scale = kernel.data.forward.scale;
      const int d_qk = static_cast<int>(p.d_qk), d_v = static_cast<int>(p.d_v);
      if constexpr (paired) {
        write(makes_p() ? kernel.dv : kernel.dk, dv(), makes_p() ? 1.0f : scale, makes_p() ? d_v : d_qk);
      } else {
        write(kernel.dk, dk(), scale, d_qk);
        write(kernel.dv, dv(), 1.0f, d_v);
      }
    }

   private:
    /// Queries, not tiles: those that any key of a run is seen by, and those that every key is.
    struct run_of_queries {
      tile_run any, whole;
    };
    /// A step of one query head.
    struct step_place {
      std::int64_t h;
      int u;  ///< step of its document
    };

    const dkv_kernel& kernel;
    shared& memory;
    const token_tile& tile;
    const head_of_document at;
    const std::int64_t kv_tile, first_q_slot;
    const place_type place;
    const int first_channel;
    const float scale_log2;
    owned rows_{}, values_{};  ///< K and V; paired: the one of them that the warp needs
    const std::uint32_t v_nonfinite;
    float sums_[paired ? 1 : 2][output::elements] = {};

    OCTAVO_DEVICE float (&dk())[output::elements] { return sums_[0]; }
    OCTAVO_DEVICE float (&dv())[output::elements] { return sums_[paired ? 0 : 1]; }

    /// paired: whether this warp makes P and dV, or dS and dK.
    OCTAVO_DEVICE static bool makes_p() { return !paired || M::thread_index() < threads_of_keys; }
    OCTAVO_DEVICE float softcap() const { return kernel.data.forward.problem.softcap; }
    OCTAVO_DEVICE row_keys queries_of(const key_ranges& ranges, int key) const {
      if (key >= tile.tokens || at.q.length == 0) return {0, 0};
      const key_range rows = ranges.rows_of(tile.first + key);
      return {static_cast<int>(rows.first), static_cast<int>(rows.last)};
    }
    /// Runs only move forward: the last key's begins last, the first one's ends first.
    OCTAVO_DEVICE run_of_queries queries_of_run(const key_ranges& ranges, int first_key, int keys) const {
      const int left = tile.tokens - first_key;
      if (left <= 0 || at.q.length == 0) return {{0, 0}, {0, 0}};
      const row_keys front = queries_of(ranges, first_key);
      const row_keys back = queries_of(ranges, first_key + (keys < left ? keys : left) - 1);
      run_of_queries run{{front.first, back.last}, {0, 0}};
      if (run.any.last <= run.any.first) run.any = {0, 0};
      if (keys <= left) run.whole = {back.first, front.last};
      return run;
    }

    OCTAVO_DEVICE void start_step(typename copies::transfer& t, const step_place& from, int slot) const {
      stage& to = memory.ring[slot];
      const step_of_tokens<M, Recipe, step> at_u(kernel.q.tile(from.h, first_q_slot), from.u);
      const row_term_tile& terms = kernel.terms[at_u.tile];
      const int first = at_u.in_tile(from.u);
      copies::start(t, copy_pair{to.q, at_u.in_image(kernel.q.images.rows, D)},
                    copy_pair{to.q_columns, at_u.in_image(kernel.q.images.columns, D)},
                    copy_pair{to.dout, at_u.in_image(kernel.dout.images.rows, D)},
                    copy_pair{to.dout_columns, at_u.in_image(kernel.dout.images.columns, D)},
                    copy_pair{to.exponent, terms.exponent + first}, copy_pair{to.shift, terms.shift + first},
                    copy_pair{to.delta, terms.delta + first}, copy_pair{to.weight, terms.weight + first},
                    copy_pair{to.delta_nonfinite, terms.nonfinite},
                    copy_pair{to.q_scale, at_u.in_factors(kernel.q.scale)},
                    copy_pair{to.do_scale, at_u.in_factors(kernel.dout.scale)},
                    copy_pair{to.nonfinite, at_u.in_marks(kernel.dout.images.nonfinite)});
    }

    /// The lane's rows of what is known of every key.
    OCTAVO_DEVICE void of_rows(const float (&x)[tile_tokens], float (&to)[scores::rows]) const {
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) to[r] = x[place.row(r)];
    }
    /// The value of element i's query.
    OCTAVO_DEVICE float at_query(const float* x, int i) const { return x[place.column + scores::column(i)]; }

    /// buffer: paired: for P.
    OCTAVO_DEVICE void visit(const step_place& here, const stage& from, int buffer, bool whole) {
      const float q_scale = tile_scale<Recipe>(from.q_scale), do_scale = tile_scale<Recipe>(from.do_scale);
      const bool capped = softcap() != 0;
      if constexpr (!paired) {
        float x[scores::elements], y[scores::elements];  // S^T to P^T, dP^T to dS^T
        multiply_rows<M, scaled, score_atom, scores, D>(x, rows_, from.q, place.lane);
        finish_scores(x, from, q_scale);
        if (!capped) [[likely]]
          make_p<scores::elements>(x, 0, from, q_scale, here.u, whole);
        multiply_rows<M, scaled, dp_atom, scores, D>(y, values_, from.dout, place.lane);
        if (!capped) [[likely]] {
          make_ds<scores::elements>(x, y, 0, from, do_scale);
        } else {
          make_capped_ds(x, y, here, from, whole);
          make_p<scores::elements>(x, 0, from, q_scale, here.u, whole);
        }
        if constexpr (folds) {  // both in one loop: with fold_queries twice clang spills more for gfx942
          OCTAVO_UNROLL
          for (int i = 0; i < scores::elements; ++i) {
            x[i] *= at_query(from.do_scale, i);
            y[i] *= at_query(from.q_scale, i);
          }
        }
        add_dv(x, here, from, do_scale);
        add_dk(y, from, q_scale);
      } else if (makes_p()) {
        float x[scores::elements];
        multiply_rows<M, scaled, score_atom, scores, D>(x, rows_, from.q, place.lane);
        finish_scores(x, from, q_scale);
        if (capped) memory.handed.give(x, buffer);
        make_p<scores::elements>(x, 0, from, q_scale, here.u, whole);
        if (!capped) [[likely]]
          memory.handed.give(x, buffer);
        fold_queries(x, from.do_scale);
        add_dv(x, here, from, do_scale);
      } else {
        float x[scores::elements], y[scores::elements];
        multiply_rows<M, scaled, dp_atom, scores, D>(y, rows_, from.dout, place.lane);
        memory.handed.take(x, buffer);
        if (!capped) [[likely]]
          make_ds<scores::elements>(x, y, 0, from, do_scale);
        else
          make_capped_ds(x, y, here, from, whole);
        fold_queries(y, from.q_scale);
        add_dk(y, from, q_scale);
      }
    }

    /// dS^T in the place of dP^T with a softcap. x holds scores, which the derivative needs as well as P: P comes four at a
    /// time.
    OCTAVO_DEVICE void make_capped_ds(const float (&x)[scores::elements], float (&y)[scores::elements],
                                      const step_place& here, const stage& from, bool whole) const {
      const float q_scale = tile_scale<Recipe>(from.q_scale), do_scale = tile_scale<Recipe>(from.do_scale);
      const score_map<functions<M>> map = soft_scale::of(kernel.data.forward).template map<M>();
      OCTAVO_UNROLL
      for (int first = 0; first < scores::elements; first += 4) {
        float p[4] = {x[first], x[first + 1], x[first + 2], x[first + 3]};
        make_p<4>(p, first, from, q_scale, here.u, whole);
        make_ds<4>(p, part_of<4>(y, first), first, from, do_scale);
        OCTAVO_UNROLL
        for (int e = 0; e < 4; ++e) y[first + e] = weighted(y[first + e], map.cap_derivative(x[first + e]));
      }
    }
    /// `token`: the scales of the queries.
    OCTAVO_DEVICE void fold_queries(float (&x)[scores::elements], const float* scale) const {
      if constexpr (folds) {
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i) x[i] *= at_query(scale, i);
      }
    }
    OCTAVO_DEVICE void add_dv(float (&p)[scores::elements], const step_place& here, const stage& from, float do_scale) {
      weights packed;
      float down[scores::rows];
      packed.template pack_scaled<E>(p, down, place.lane);
      if (any_bit(from.nonfinite) != 0) [[unlikely]] {
        const step_of_tokens<M, Recipe, step> at_u(kernel.q.tile(here.h, first_q_slot), here.u);
        memory.poisoned.note(packed, place, at_u.in_tile(here.u), from.nonfinite,
                             kernel.dout.images.nonfinite_channels + at_u.tile * tile_tokens * (D / 32));
      }
      add_products<dv_atom>(dv(), packed, from.dout_columns, down, do_scale);
    }
    OCTAVO_DEVICE void add_dk(float (&ds)[scores::elements], const stage& from, float q_scale) {
      weights packed;
      float down[scores::rows];
      packed.template pack_scaled<G>(ds, down, place.lane);
      add_products<dk_atom>(dk(), packed, from.q_columns, down, q_scale);
    }

    OCTAVO_DEVICE void finish_scores(float (&s)[scores::elements], const stage& from, float q_scale) const {
      if constexpr (folds) {
        float k_scale[scores::rows];
        of_rows(memory.k_scale, k_scale);
        OCTAVO_UNROLL
        for (int i = 0; i < scores::elements; ++i) s[i] *= k_scale[scores::row(i)];
      }
      if (softcap() == 0) [[likely]]
        return;
      const score_map<functions<M>> map = soft_scale::of(kernel.data.forward).template map<M>();
      OCTAVO_UNROLL
      for (int i = 0; i < scores::elements; ++i) s[i] = map.capped(s[i] * score_factor(from, i, q_scale));
    }
    OCTAVO_DEVICE float score_factor(const stage& from, int i, float q_scale) const {
      if constexpr (folds) return at_least_tiny(scale_log2 * score_atom::unit * at_query(from.q_scale, i));
      return at_least_tiny(scale_log2 * score_atom::unit * q_scale * memory.k_scale[0]);
    }

    /// P^T of elements [first, first + N): the same operations as in the row loops, on the transposed fragment.
    template <int N>
    OCTAVO_DEVICE void make_p(float (&s)[N], int first, const stage& from, float q_scale, int u, bool whole) const {
      const bool capped = softcap() != 0;
      float fold[scores::rows];
      of_rows(memory.fold, fold);
      probabilities<M, Recipe, Delta>(
          s, any_bit(from.special) != 0, [&](int i) { return capped ? 1.0f : score_factor(from, first + i, q_scale); },
          [&](int i) { return at_query(from.exponent, first + i); },
          [&](int i) { return at_query(from.weight, first + i); }, [&](int i) { return fold[scores::row(first + i)]; });
      if (whole) [[likely]]
        return;
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) {
        const row_keys queries = memory.queries[place.row(scores::row(first + i))];
        if (!queries.allows(u * step + place.column + scores::column(first + i))) s[i] = 0;
      }
    }

    /// dS^T from P^T and raw dP^T.
    template <int N>
    OCTAVO_DEVICE void make_ds(const float (&p)[N], float (&dp)[N], int first, const stage& from,
                               float do_scale) const {
      float v_scale[scores::rows];
      of_rows(memory.v_scale, v_scale);
      const float of_tile = do_scale * memory.v_scale[0];
      OCTAVO_UNROLL
      for (int i = 0; i < N; ++i) {
        const int e = first + i;
        if constexpr (folds) dp[i] *= v_scale[scores::row(e)];
        const float of_query = folds ? at_query(from.do_scale, e) : of_tile;
        dp[i] = p[i] * (fmaf(dp[i], of_query, -at_query(from.shift, e)) - at_query(from.delta, e));
      }
      // A pair without weight has no gradient, whatever dP and delta are.
      if ((v_nonfinite | any_bit(from.nonfinite) | any_bit(from.delta_nonfinite)) != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (int i = 0; i < N; ++i)
          if (p[i] == 0) dp[i] = 0;
      }
    }

    template <class A>
    OCTAVO_DEVICE void add_products(float (&sum)[output::elements], const weights& packed, const std::uint8_t* columns,
                                    const float (&down)[scores::rows], float scale) const {
      constexpr int part_sums = row_tiles * A::sums;
      float factor[scores::rows];
      OCTAVO_UNROLL
      for (int r = 0; r < scores::rows; ++r) factor[r] = down[r] * scale * A::unit;
      multiply_columns<A, D, part_channels>(
          packed, columns, first_channel, place.lane, [&](const float(&part)[part_sums], int c) {
            OCTAVO_UNROLL
            for (int i = 0; i < part_sums; ++i) {
              const int to = (i / A::sums * output::atoms + c) * A::sums + i % A::sums;
              sum[to] = fmaf(part[i], factor[output::row(to)], sum[to]);
            }
          });
    }

    OCTAVO_DEVICE void write(const tensor& to, const float (&x)[output::elements], float scale, int channels) const {
      const std::int64_t first = element_offset(to, kernel.data.forward.kv_docs, tile.document, tile.first, at.h_kv);
      const result_writer<M, output> writer(to, first, place, tile.tokens, channels, first_channel);
      writer.write([&](int i) { return x[i] * scale; });
    }
  };
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
