// SPDX-License-Identifier: Apache-2.0
// The Blackwell forward: a block takes two tiles of 128 query rows of one head, each with a group of 128 threads, a thread
// a row. For every tile of keys
//
//     S = Q K^T        M' = max(M, ceil(max_j s))       P^ = e4m3(2^8 2^(s - M'))       O = 2^(M - M') O + 2^-8 P^ V
//
// S, P^ and O stay in tensor memory. The scale of P^ is the constant 2^-8 (a tile of scales that nobody rewrites). M is a
// whole number, so that O has to be rescaled only when the maximum passes one, a few times in a row's life: the rows'
// own threads do it then, and there is no role of correction. While one group makes its exponentials, the tensor cores
// make the other one's products.
//
// Tensor memory at d 128 is full of S and O (128 columns each, twice). P^ and the scales of its product stand where S
// stood, which is dead once a group has it in registers; the scales of a group's next S stand in the other group's:
//
//     columns of S of group g   0-31 P^ of g   32-35 scales of P^   36-39 of V   64-67 of Q of 1 - g   68-71 of K
#pragma once

#include <octavo/backends/cuda/blackwell/exponentials.hpp>
#include <octavo/backends/cuda/blackwell/rows.hpp>
#include <octavo/backends/cuda/ptx/mixed.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// some_by_polynomial: see exponentials.hpp.
template <class Recipe, class Delta, int D, bool some_by_polynomial>
struct forward_kernel {
  static constexpr const char* name = "blackwell forward";
  using E = typename Recipe::element;
  static constexpr int threads = block_threads, blocks_per_sm = 1;
  static constexpr int extra_rows = 0;
  static constexpr int stages = D <= 64 ? 6 : 4;
  static constexpr int block_rows = row_groups * tile_tokens;

  struct shared {
    std::uint8_t q[row_groups][tile_tokens * D];
    std::uint8_t k[stages][tile_tokens * D], v[stages][tile_tokens * D];
    std::uint8_t q_scales[row_groups][scale_bytes], k_scales[stages][scale_bytes], v_scales[stages][scale_bytes];
    std::uint8_t p_scales[scale_bytes];
    ring<stages> keys, values;
    ptx::shared_barrier queries;
    ptx::shared_barrier scores[row_groups];   ///< S is made
    ptx::shared_barrier taken[row_groups];    ///< S is in registers
    ptx::shared_barrier weights[row_groups];  ///< P^ is made, and O rescaled
    ptx::shared_barrier summed[row_groups];   ///< P^ V is in O
    ptx::shared_barrier finished;             ///< every product has ended
    tensor_memory tensor;
    poisoned_results<block_rows, D> poisoned;
  };
  static constexpr int shared_bytes = sizeof(shared);

  pass_data<Recipe> data;
  forward_outputs out;
  image_operand q, k, v;

  /// The same for a device that is not short of EX2.
  forward_kernel<Recipe, Delta, D, false> with_special_units() const { return {data, out, q, k, v}; }

  std::int64_t blocks() const { return data.q_docs.slots(block_rows) * data.problem.h_q; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    start(memory);
    // Heads one after another, so that blocks that run together share keys; the longest rows of a causal mask first.
    const std::uint32_t block = block_number(), slots = narrow(data.q_docs.slots(block_rows));
    const std::uint32_t h = block / slots;
    const token_tile rows = tile_of_slot<block_rows>(data.q_docs, slots - 1 - block % slots);
    if (rows.tokens > 0) take_role(memory, h, rows);
    memory.tensor.give_back();
  }

 private:
  /// Each role works out by itself what is to be done: numbers that outlive the beginning would be short of registers.
  OCTAVO_DEVICE void take_role(shared& memory, std::uint32_t h, const token_tile& rows) const {
    const int warp = ptx::uniform(ptx::thread_index() / ptx::warp_threads);
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<issuing_registers>();
      if (warp == copying_warp && ptx::elect_one()) copy_tiles(memory, work_of(head_of(data, rows.document, h), rows));
      if (warp == multiplying_warp && ptx::elect_one())
        multiply(memory, work_of(head_of(data, rows.document, h), rows));
    } else {
      ptx::raise_registers<row_registers>();
      const head_of_document at = head_of(data, rows.document, h);
      row_of_block{*this, memory, at, rows, work_of(at, rows)}.run();
    }
  }

  /// What a block does: key tiles, and those of them that each group's rows see.
  struct work {
    visible_tiles of_group[row_groups];
    tile_run tiles;
    int q_tile, kv_tile;  ///< images of the first query tile and of key tile 0
    int query_tiles;
  };
  OCTAVO_DEVICE work work_of(const head_of_document& at, const token_tile& rows) const {
    const key_ranges ranges = data.ranges(at);
    work w;
    OCTAVO_UNROLL
    for (int g = 0; g < row_groups; ++g) {
      const int left = rows.tokens - g * tile_tokens, n = left < 0 ? 0 : left < tile_tokens ? left : tile_tokens;
      w.of_group[g] = visible_tiles::of(ranges, rows.first + g * tile_tokens, n, n == tile_tokens);
    }
    const visible_tiles both = visible_tiles::of(ranges, rows.first, rows.tokens, false);
    w.tiles = both.any;
    w.q_tile = q.tile(at.h_q, data.q_docs.first_slot(at.document, tile_tokens) + rows.first / tile_tokens);
    w.kv_tile = k.tile(at.h_kv, at.kv.length == 0 ? 0 : data.kv_docs.first_slot(at.document, tile_tokens));
    w.query_tiles = rows.tokens > tile_tokens ? 2 : 1;
    return w;
  }

  OCTAVO_DEVICE static void start(shared& memory) {
    if (ptx::thread_index() == 0) {
      memory.keys.init(1);
      memory.values.init(1);
      memory.queries.init(1);
      memory.finished.init(1);
      for (int g = 0; g < row_groups; ++g) {
        memory.scores[g].init(1);
        memory.taken[g].init(group_arrivals);
        memory.weights[g].init(group_arrivals);
        memory.summed[g].init(1);
      }
      ptx::fence_barriers();
    }
    memory.poisoned.clear();
    static_assert(p_scale<E> == 256.0f);
    constexpr std::uint32_t down = e8m0::bias - 8;
    if (ptx::thread_index() < scale_bytes / 4)
      reinterpret_cast<std::uint32_t*>(memory.p_scales)[ptx::thread_index()] = down * 0x01010101u;
    ptx::fence_async();
    memory.tensor.take();
  }

  OCTAVO_DEVICE void copy_tiles(shared& memory, const work& w) const {
    constexpr int payload = tile_images::payload_bytes(D);
    if (w.tiles.last == w.tiles.first) return;
    memory.queries.arrive_expecting(w.query_tiles * (payload + scale_bytes));
    for (int g = 0; g < w.query_tiles; ++g) {
      ptx::bulk_load(memory.q[g], q.rows(w.q_tile + g, D), payload, memory.queries);
      ptx::bulk_load(memory.q_scales[g], q.row_scales(w.q_tile + g), scale_bytes, memory.queries);
    }
    ring_place<stages> place;
    OCTAVO_NO_UNROLL
    for (int t = w.tiles.first; t < w.tiles.last; ++t, place.advance()) {
      const int from = w.kv_tile + t;
      const int stage = place.stage;
      place.wait_empty(memory.keys);
      memory.keys.full[stage].arrive_expecting(payload + scale_bytes);
      ptx::bulk_load(memory.k[stage], k.rows(from, D), payload, memory.keys.full[stage]);
      ptx::bulk_load(memory.k_scales[stage], k.row_scales(from), scale_bytes, memory.keys.full[stage]);
      place.wait_empty(memory.values);
      memory.values.full[stage].arrive_expecting(payload + scale_bytes);
      ptx::bulk_load(memory.v[stage], v.columns(from, D), payload, memory.values.full[stage]);
      ptx::bulk_load(memory.v_scales[stage], v.column_scales(from), scale_bytes, memory.values.full[stage]);
    }
  }

  // The columns of tensor memory.
  OCTAVO_HD static constexpr int scores_column(int g) { return g * tile_tokens; }
  OCTAVO_HD static constexpr int output_column(int g) { return row_groups * tile_tokens + g * D; }
  static constexpr int p_scales_column = 32, v_scales_column = 36, q_scales_column = 64, k_scales_column = 68;

  /// The thread that issues all products.
  OCTAVO_DEVICE void multiply(shared& memory, const work& w) const {
    if (w.tiles.last == w.tiles.first) return;
    products issue{memory, memory.tensor.first};
    ring_place<stages> key, value;
    memory.queries.wait(0);
    key.wait_full(memory.keys);
    OCTAVO_UNROLL
    for (int g = 0; g < row_groups; ++g)
      if (w.of_group[g].any.holds(w.tiles.first)) issue.scores(g, key.stage);
    ptx::tcgen05_commit(memory.keys.empty[key.stage]);
    OCTAVO_NO_UNROLL
    for (int t = w.tiles.first; t < w.tiles.last; ++t, value.advance()) {
      const bool has_next = t + 1 < w.tiles.last;
      value.wait_full(memory.values);
      if (has_next) {
        key.advance();
        key.wait_full(memory.keys);
      }
      OCTAVO_UNROLL
      for (int g = 0; g < row_groups; ++g) {
        if (w.of_group[g].any.holds(t)) issue.sums(g, value.stage);
        if (has_next && w.of_group[g].any.holds(t + 1)) issue.scores(g, key.stage);
      }
      ptx::tcgen05_commit(memory.values.empty[value.stage]);
      if (has_next) ptx::tcgen05_commit(memory.keys.empty[key.stage]);
    }
    end_products(memory.finished);
  }

  struct products {
    shared& memory;
    ptx::tensor_address tensor;
    int made[row_groups] = {0, 0}, added[row_groups] = {0, 0};  ///< products so far

    /// S of group g. Its columns held P^, and the other group's hold the scales.
    OCTAVO_DEVICE void scores(int g, int stage) {
      const int other = 1 - g;
      if (added[g] > 0) wait_for(memory.summed[g], (added[g] - 1) & 1);
      if (made[other] > 0) wait_for(memory.taken[other], (made[other] - 1) & 1);
      const ptx::tensor_address spare = tensor.column(scores_column(other));
      const ptx::tensor_address q_scales = spare.column(q_scales_column), k_scales = spare.column(k_scales_column);
      copy_scales(q_scales, memory.q_scales[g]);
      copy_scales(k_scales, memory.k_scales[stage]);
      multiply_rows<D, tile_tokens>(tensor.column(scores_column(g)), operand_of(memory.q[g]), q_scales, memory.k[stage],
                                    k_scales, 0);
      ptx::tcgen05_commit(memory.scores[g]);
      ++made[g];
    }
    /// O of group g, when P^ is there.
    OCTAVO_DEVICE void sums(int g, int stage) {
      wait_for(memory.weights[g], added[g] & 1);
      const ptx::tensor_address p = tensor.column(scores_column(g));
      const ptx::tensor_address p_scales = p.column(p_scales_column), v_scales = p.column(v_scales_column);
      copy_scales(p_scales, memory.p_scales);
      copy_scales(v_scales, memory.v_scales[stage]);
      multiply_columns<D, tile_tokens>(tensor.column(output_column(g)), p, p_scales, memory.v[stage], v_scales, 0,
                                       added[g] > 0);
      ptx::tcgen05_commit(memory.summed[g]);
      ++added[g];
    }
  };

  /// One thread's row.
  struct row_of_block {
    const forward_kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& rows;
    const work all;

    row_place place = row_place::here();
    int in_block = place.group * tile_tokens + place.row;
    ptx::tensor_address scores = place.lanes_of(memory.tensor.first.column(scores_column(place.group)));
    ptx::tensor_address output = place.lanes_of(memory.tensor.first.column(output_column(place.group)));
    float l = 0, m = 0, maximum = minus_infinity;  ///< l in units of 1 / p_scale
    bool noted = false;                            ///< a NaN of V reached the row

    OCTAVO_DEVICE void run() {
      const visible_tiles mine = place.group == 0 ? all.of_group[0] : all.of_group[1];
      const row_keys keys =
          in_block < rows.tokens ? row_keys::of(kernel.data.ranges(at), rows.first + in_block) : row_keys{};
      const score_map<functions> map = score_map<functions>::of(kernel.data.scale, kernel.data.problem.softcap);
      int visited = 0;
      OCTAVO_NO_UNROLL
      for (int t = mine.any.first; t < mine.any.last; ++t, ++visited) visit(t, visited, keys, map, mine.whole.holds(t));
      if (visited > 0) wait_for(memory.summed[place.group], (visited - 1) & 1);
      finish(visited > 0);
    }

   private:
    OCTAVO_DEVICE void visit(int t, int visited, const row_keys& keys, const score_map<functions>& map, bool whole) {
      float s[tile_tokens];
      const std::uint32_t* nonfinite = kernel.v.nonfinite(all.kv_tile + t);
      const bool strange = any_bit(nonfinite) != 0;
      wait_for(memory.scores[place.group], visited & 1);
      ptx::tcgen05_load(s, scores);
      ptx::tcgen05_wait_loads(s);
      place.arrive(memory.taken[place.group]);

      float factor = map.scale_log2;
      if (map.softcap != 0) [[unlikely]] {
        OCTAVO_UNROLL
        for (float& x : s) x = map.capped(x * factor);
        factor = 1;
      }
      if (!whole) [[unlikely]] {
        OCTAVO_UNROLL
        for (int j = 0; j < tile_tokens; ++j)
          if (!keys.allows(t * tile_tokens + j)) s[j] = minus_infinity;
      }
      maximum = fmaxf(maximum, maximum_of(s) * factor);  // that of rounded products: rounding keeps the order
      const float m_new = shared_exponent<Delta>(maximum);
      const float alpha = l == 0 ? 1.0f : functions::exp2(m - m_new);  // nothing summed yet: nothing to rescale
      m = m_new;
      if (ptx::any_in_warp(alpha != 1)) rescale(alpha, visited);
      l *= alpha;
      std::uint32_t weights[tile_tokens / 4];
      make_weights(s, factor, weights);
      if (strange) [[unlikely]]
        noted |= memory.poisoned.note(in_block, weights, kernel.v.columns(all.kv_tile + t, D), 0, nonfinite);
      ptx::tcgen05_store(scores, weights);
      ptx::tcgen05_wait_stores();
      place.arrive(memory.weights[place.group]);
    }

    OCTAVO_DEVICE static float maximum_of(const float (&s)[tile_tokens]) {
      float high[8];
      OCTAVO_UNROLL
      for (int j = 0; j < tile_tokens; ++j) high[j % 8] = j < 8 ? s[j] : fmaxf(high[j % 8], s[j]);
      return fmaxf(fmaxf(fmaxf(high[0], high[1]), fmaxf(high[2], high[3])),
                   fmaxf(fmaxf(high[4], high[5]), fmaxf(high[6], high[7])));
    }
    /// O relative to the new maximum. All lanes of a warp; the products before have ended.
    OCTAVO_DEVICE void rescale(float alpha, int visited) const {
      if (visited == 0) return;
      wait_for(memory.summed[place.group], (visited - 1) & 1);
      OCTAVO_NO_UNROLL
      for (int first = 0; first < D; first += 32) {
        float o[32];
        ptx::tcgen05_load(o, output.column(first));
        ptx::tcgen05_wait_loads(o);
        OCTAVO_UNROLL
        for (float& x : o) x *= alpha;
        ptx::tcgen05_store(output.column(first), o);
      }
      ptx::tcgen05_wait_stores();
    }
    /// P^ in units of 1 / p_scale; l sums rounded weights (stale: unrounded ones).
    OCTAVO_DEVICE void make_weights(float (&s)[tile_tokens], float factor, std::uint32_t (&weights)[tile_tokens / 4]) {
      float shift = 8 - m, sum[4] = {0, 0, 0, 0};
      if (is_large(m)) [[unlikely]] {  // rounded products, as in all loops; and 8 may be less than M's last place
        OCTAVO_UNROLL
        for (float& x : s) x = ptx::multiply(x, factor) - m;
        factor = 1, shift = 8;
      }
      OCTAVO_UNROLL
      for (int j = 0; j < tile_tokens; j += 2) {
        const ptx::pair x = ptx::multiply_add({s[j], s[j + 1]}, ptx::pair::both(factor), ptx::pair::both(shift));
        s[j] = x.low, s[j + 1] = x.high;
      }
      exponentials<some_by_polynomial>(s);
      OCTAVO_UNROLL
      for (int j = 0; j < tile_tokens; j += 4) {
        weights[j / 4] = ptx::pack<E>(s[j], s[j + 1], s[j + 2], s[j + 3]);
        if constexpr (Delta::integer_maximum) {
          ptx::add_e4m3(weights[j / 4], sum);
        } else {
          OCTAVO_UNROLL
          for (int e = 0; e < 4; ++e) sum[e] += s[j + e];
        }
      }
      l += (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }

    /// O / l, LSE, M and l. The sink joins the sum here: it takes no part in M.
    OCTAVO_DEVICE void finish(bool any_tile) const {
      const pass_data<Recipe>& d = kernel.data;
      const forward_outputs& to = kernel.out;
      const bool exists = in_block < rows.tokens;
      const std::int64_t row = d.statistic(at.document, at.h_q, rows.first + (exists ? in_block : 0));
      const float keys = l * (1.0f / p_scale<E>);
      const float sink = exists ? d.sink_log2(at.document, at.h_q, row) : minus_infinity;
      const float sum = keys + sink_weight<functions>(sink, m);
      if (exists) {
        if (to.lse != nullptr)
          to.lse[row] = log_sum_exp(m, keys, sink) + (d.q_shift != nullptr ? d.q_shift[row] : 0.0f);
        if (to.m != nullptr) to.m[row] = m;
        if (to.l != nullptr) to.l[row] = sum;
      }
      const float reciprocal = reciprocal_or_zero(sum);
      OCTAVO_NO_UNROLL
      for (int first = 0; first < D; first += 32) {
        float o[32] = {};
        if (any_tile) {
          ptx::tcgen05_load(o, output.column(first));
          ptx::tcgen05_wait_loads(o);
        }
        OCTAVO_UNROLL
        for (int c = 0; c < 32; ++c) {
          o[c] *= reciprocal;
          if (noted && memory.poisoned.holds(in_block, first + c)) o[c] = detail::float_nan();
        }
        if (!exists) continue;
        write_row(to.o, first_element(to.o) + first, o);
        if (!d.problem.o_residual) [[likely]]
          continue;
        OCTAVO_UNROLL
        for (float& x : o) x -= as_stored(to.o.type, x);
        write_row(to.o_residual, first_element(to.o_residual) + first, o);
      }
    }
    OCTAVO_DEVICE std::int64_t first_element(const tensor& t) const {
      return element_offset(t, kernel.data.q_docs, at.document, rows.first + in_block, at.h_q);
    }
  };
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
