// SPDX-License-Identifier: Apache-2.0
// dK and dV on Blackwell: a block takes 128 keys of one head and walks over the query tiles that see them, for every query
// head of their group:
//
//     S^T = K Q^T     dP^T = V dO^T     P^T = 2^(s - exponent)     dS^T = P^T ((dP - c) - (delta - c))
//     dV += quant(P^T) dO               dK += quant(dS^T) Q        quantised per key and 32 queries
//
// The transposed scores have keys in rows: a thread owns a key and quantises P^T and dS^T along queries by itself, and
// dK and dV stay in tensor memory for the whole walk: grouped heads need no reduction. Two groups of 128 threads each own
// one half of every tile, 64 queries.
//
// Tensor memory at d 128 is full: S^T and dP^T (64 columns for each half), dK and dV (128 each). P^T, dS^T and all scales
// stand where S^T and dP^T stood, dead once a group has them in registers; the scales of a half's next S^T and dP^T stand
// in the other half's:
//
//     columns of S^T of half g    0-15 P^T     16-19 its scales   20-23 of dO's columns   32-35 of K   36-39 of Q
//     columns of dP^T of half g   0-15 dS^T    16-19 its scales   20-23 of Q's columns    32-35 of V   36-39 of dO
//                                 (of g, for dV and dK)                                   (of 1 - g, for S^T and dP^T)
#pragma once

#include <octavo/algorithm/backward.hpp>
#include <octavo/backends/cuda/blackwell/gradients.hpp>
#include <octavo/backends/cuda/blackwell/row_loop.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

template <class Recipe, class Delta, int D>
struct dkv_kernel {
  static constexpr const char* name = "blackwell dK dV";
  using E = typename Recipe::element;
  using G = typename Recipe::gradient_element;
  static constexpr int threads = block_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : 2;
  static constexpr int payload = tile_images::payload_bytes(D);

  struct stage {
    std::uint8_t q[payload], q_columns[payload], dout[payload], dout_columns[payload];
    std::uint8_t q_scales[scale_bytes], q_column_scales[scale_bytes], dout_scales[scale_bytes],
        dout_column_scales[scale_bytes];
    row_term_tile terms;
    std::uint32_t nonfinite[tile_blocks];
  };
  struct shared {
    std::uint8_t k[payload], v[payload], k_scales[scale_bytes], v_scales[scale_bytes];
    stage ring_of[stages];
    std::uint8_t p_scales[row_groups][scale_bytes], ds_scales[row_groups][scale_bytes];
    ring<stages> tiles;
    ptx::shared_barrier keys;
    ptx::shared_barrier made[row_groups];       ///< S^T and dP^T of a half
    ptx::shared_barrier taken[row_groups];      ///< they are in registers
    ptx::shared_barrier gradients[row_groups];  ///< P^T and dS^T of the half are in tensor memory
    ptx::shared_barrier summed[row_groups];     ///< they are in dV and dK
    ptx::shared_barrier finished;               ///< every product has ended
    tensor_memory tensor;
    poisoned_results<tile_tokens, D> poisoned;
    std::uint32_t noted;  ///< not 0 where it holds any
  };
  static constexpr int shared_bytes = sizeof(shared);

  backward_data<Recipe> data;
  image_operand q, k, v, dout;
  const row_term_tile* terms = nullptr;  ///< [h_q][slots of queries]
  tensor dk, dv;

  std::int64_t blocks() const { return data.forward.kv_docs.slots(tile_tokens) * data.forward.problem.h_kv; }

  OCTAVO_DEVICE void operator()() const {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    start(memory);
    const std::uint32_t block = block_number(), slots = narrow(k.slots);
    const std::uint32_t h_kv = block / slots, slot = block % slots;
    const token_tile tile = tile_of_slot<tile_tokens>(data.forward.kv_docs, slot);
    if (tile.tokens > 0) take_role(memory, h_kv, slot, tile);
    memory.tensor.give_back();
  }

 private:
  OCTAVO_DEVICE void take_role(shared& memory, std::uint32_t h_kv, std::uint32_t slot, const token_tile& tile) const {
    const pass_data<Recipe>& d = data.forward;
    const std::uint32_t group = narrow(d.problem.h_q) / narrow(d.problem.h_kv);
    const head_of_document at = head_of(d, tile.document, h_kv * group);
    const key_ranges ranges = d.ranges(at);
    const std::int64_t first_q_slot = at.q.length == 0 ? 0 : d.q_docs.first_slot(at.document, tile_tokens);
    const work all{query_tiles(ranges, at, tile), static_cast<int>(group), k.tile(h_kv, slot), first_q_slot};
    const int warp = ptx::uniform(ptx::thread_index() / ptx::warp_threads);
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<issuing_registers>();
      if (warp == copying_warp && all.count() > 0 && ptx::elect_one()) copy_tiles(memory, h_kv, all);
      if (warp == multiplying_warp && all.count() > 0 && ptx::elect_one()) multiply(memory, all.count());
    } else {
      ptx::raise_registers<row_registers>();
      key_of_block{*this, memory, at, tile, ranges, all}.run();
    }
  }

  /// What a block does: query tiles, for each head of the group.
  struct work {
    tile_run tiles;
    int heads;
    int kv_tile;
    std::int64_t first_q_slot;
    OCTAVO_DEVICE int count() const { return heads * (tiles.last - tiles.first); }
  };

  OCTAVO_DEVICE static void start(shared& memory) {
    if (ptx::thread_index() == 0) {
      memory.tiles.init(1);
      memory.keys.init(1);
      memory.finished.init(1);
      for (int half = 0; half < row_groups; ++half) {
        memory.made[half].init(1);
        memory.taken[half].init(group_arrivals);
        memory.gradients[half].init(group_arrivals);
        memory.summed[half].init(1);
      }
      ptx::fence_barriers();
    }
    memory.poisoned.clear();
    if (ptx::thread_index() == 0) memory.noted = 0;
    memory.tensor.take();
  }

  OCTAVO_DEVICE void copy_tiles(shared& memory, std::int64_t h_kv, const work& w) const {
    memory.keys.arrive_expecting(2 * (payload + scale_bytes));
    ptx::bulk_load(memory.k, k.rows(w.kv_tile, D), payload, memory.keys);
    ptx::bulk_load(memory.k_scales, k.row_scales(w.kv_tile), scale_bytes, memory.keys);
    ptx::bulk_load(memory.v, v.rows(w.kv_tile, D), payload, memory.keys);
    ptx::bulk_load(memory.v_scales, v.row_scales(w.kv_tile), scale_bytes, memory.keys);
    ring_place<stages> place;
    for (std::int64_t h = h_kv * w.heads; h < (h_kv + 1) * w.heads; ++h) {
      OCTAVO_NO_UNROLL
      for (int t = w.tiles.first; t < w.tiles.last; ++t, place.advance()) {
        stage& to = memory.ring_of[place.stage];
        const int from = q.tile(h, w.first_q_slot + t);
        place.wait_empty(memory.tiles);
        ptx::shared_barrier& full = memory.tiles.full[place.stage];
        full.arrive_expecting(4 * (payload + scale_bytes) + sizeof to.terms + sizeof to.nonfinite);
        ptx::bulk_load(to.q, q.rows(from, D), payload, full);
        ptx::bulk_load(to.q_scales, q.row_scales(from), scale_bytes, full);
        ptx::bulk_load(to.dout, dout.rows(from, D), payload, full);
        ptx::bulk_load(to.dout_scales, dout.row_scales(from), scale_bytes, full);
        ptx::bulk_load(&to.terms, terms + from, sizeof to.terms, full);
        ptx::bulk_load(to.nonfinite, dout.nonfinite(from), sizeof to.nonfinite, full);
        ptx::bulk_load(to.dout_columns, dout.columns(from, D), payload, full);
        ptx::bulk_load(to.dout_column_scales, dout.column_scales(from), scale_bytes, full);
        ptx::bulk_load(to.q_columns, q.columns(from, D), payload, full);
        ptx::bulk_load(to.q_column_scales, q.column_scales(from), scale_bytes, full);
      }
    }
  }

  // The columns of tensor memory; the small ones are counted from a half's S^T or dP^T.
  OCTAVO_HD static constexpr int scores_column(int half) { return half_tokens * half; }
  OCTAVO_HD static constexpr int dp_column(int half) { return tile_tokens + half_tokens * half; }
  static constexpr int dk_column = 2 * tile_tokens, dv_column = dk_column + D;
  static constexpr int left_scales_column = 16, right_scales_column = 20;
  static constexpr int key_scales_column = 32, query_scales_column = 36;

  /// The thread that issues all products.
  OCTAVO_DEVICE static void multiply(shared& memory, int count) {
    products issue{memory, memory.tensor.first};
    ring_place<stages> place;
    memory.keys.wait(0);
    place.wait_full(memory.tiles);
    for (int half = 0; half < row_groups; ++half) issue.scores(half, place.stage);
    OCTAVO_NO_UNROLL
    for (int n = 0; n < count; ++n) {
      const bool has_next = n + 1 < count;
      ring_place<stages> next = place;
      next.advance();
      for (int half = 0; half < row_groups; ++half) {
        issue.sums(half, place.stage, n & 1, n > 0);
        if (half + 1 == row_groups) ptx::tcgen05_commit(memory.tiles.empty[place.stage]);
        if (!has_next) continue;
        if (half == 0) next.wait_full(memory.tiles);
        wait_for(memory.summed[half], n & 1);  // P^T and dS^T stand where S^T and dP^T will
        issue.scores(half, next.stage);
      }
      place = next;
    }
    end_products(memory.finished);
  }

  struct products {
    shared& memory;
    ptx::tensor_address tensor;
    int made[row_groups] = {0, 0};  ///< products so far

    /// S^T and dP^T of a half, with scales in the columns of the other one.
    OCTAVO_DEVICE void scores(int half, int stage) {
      const int other = 1 - half, first = half * half_tokens;
      if (made[other] > 0) wait_for(memory.taken[other], (made[other] - 1) & 1);
      const dkv_kernel::stage& from = memory.ring_of[stage];
      const ptx::tensor_address beside_s = tensor.column(scores_column(other));
      const ptx::tensor_address beside_dp = tensor.column(dp_column(other));
      const ptx::tensor_address k_scales = beside_s.column(key_scales_column);
      const ptx::tensor_address q_scales = beside_s.column(query_scales_column);
      const ptx::tensor_address v_scales = beside_dp.column(key_scales_column);
      const ptx::tensor_address dout_scales = beside_dp.column(query_scales_column);
      copy_scales(k_scales, memory.k_scales);
      copy_scales(q_scales, from.q_scales);
      copy_scales(v_scales, memory.v_scales);
      copy_scales(dout_scales, from.dout_scales);
      multiply_rows<D, half_tokens>(tensor.column(scores_column(half)), operand_of(memory.k), k_scales, from.q,
                                    q_scales, first);
      multiply_rows<D, half_tokens>(tensor.column(dp_column(half)), operand_of(memory.v), v_scales, from.dout,
                                    dout_scales, first);
      ptx::tcgen05_commit(memory.made[half]);
      ++made[half];
    }
    /// dV and dK of a half, when P^T and dS^T are there.
    OCTAVO_DEVICE void sums(int half, int stage, int parity, bool accumulate) {
      wait_for(memory.gradients[half], parity);
      const dkv_kernel::stage& from = memory.ring_of[stage];
      const int first = half * half_tokens;
      const ptx::tensor_address p = tensor.column(scores_column(half)), ds = tensor.column(dp_column(half));
      copy_scales(p.column(left_scales_column), memory.p_scales[half]);
      copy_scales(p.column(right_scales_column), from.dout_column_scales);
      copy_scales(ds.column(left_scales_column), memory.ds_scales[half]);
      copy_scales(ds.column(right_scales_column), from.q_column_scales);
      multiply_columns<D, half_tokens>(tensor.column(dv_column), p, p.column(left_scales_column), from.dout_columns,
                                       p.column(right_scales_column), first, accumulate || half > 0);
      multiply_columns<D, half_tokens>(tensor.column(dk_column), ds, ds.column(left_scales_column), from.q_columns,
                                       ds.column(right_scales_column), first, accumulate || half > 0);
      ptx::tcgen05_commit(memory.summed[half]);
    }
  };

  /// One thread's key.
  struct key_of_block {
    const dkv_kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& tile;
    const key_ranges& ranges;
    const work& all;

    row_place place = row_place::here();
    bool exists = place.row < tile.tokens;
    row_keys queries = queries_of_key();
    tile_run seen_by_all = queries_of_all();  ///< queries that every key of the tile is seen by
    score_map<functions> map = score_map<functions>::of(kernel.data.forward.scale, kernel.data.forward.problem.softcap);
    std::uint32_t v_nonfinite = any_bit(kernel.v.nonfinite(all.kv_tile));

    OCTAVO_DEVICE row_keys queries_of_key() const {
      if (!exists || at.q.length == 0) return {0, 0};
      const key_range rows = ranges.rows_of(tile.first + place.row);
      return {static_cast<int>(rows.first), static_cast<int>(rows.last)};
    }
    OCTAVO_DEVICE tile_run queries_of_all() const {
      if (tile.tokens < tile_tokens || at.q.length == 0) return {0, 0};
      // Runs only move forward: the last key's begins last, the first one's ends first.
      return {static_cast<int>(ranges.rows_of(tile.first + tile_tokens - 1).first),
              static_cast<int>(ranges.rows_of(tile.first).last)};
    }

    OCTAVO_DEVICE void run() {
      ring_place<stages> from;
      int parity = 0;
      OCTAVO_NO_UNROLL
      for (int head = 0; head < all.heads; ++head) {
        OCTAVO_NO_UNROLL
        for (int t = all.tiles.first; t < all.tiles.last; ++t, parity ^= 1, from.advance()) {
          from.wait_full(memory.tiles);  // the terms of its rows
          visit(memory.ring_of[from.stage], t * tile_tokens + place.group * half_tokens, parity);
        }
      }
      finish(all.count());
    }

   private:
    /// The terms of a stage's queries.
    struct row_terms_of_queries {
      const row_term_tile& of_tile;
      int first;  ///< of element 0, in the tile
      row_keys queries;
      int query;  ///< of element 0, in the document
      OCTAVO_DEVICE float exponent(int i) const { return of_tile.exponent[first + i]; }
      OCTAVO_DEVICE float weight(int i) const { return of_tile.weight[first + i]; }
      OCTAVO_DEVICE float shift(int i) const { return of_tile.shift[first + i]; }
      OCTAVO_DEVICE float delta(int i) const { return of_tile.delta[first + i]; }
      OCTAVO_DEVICE bool allowed(int i) const { return queries.allows(query + i); }
    };

    OCTAVO_DEVICE ptx::tensor_address columns(int first) const {
      return place.lanes_of(memory.tensor.first.column(first));
    }

    OCTAVO_DEVICE void visit(const stage& from, int query, int parity) {
      const int half = place.group, first = half * half_tokens;
      float s[half_tokens], dp[half_tokens];
      wait_for(memory.made[half], parity);
      ptx::tcgen05_load(s, columns(scores_column(half)));
      ptx::tcgen05_load(dp, columns(dp_column(half)));
      ptx::tcgen05_wait_loads(s, dp);
      place.arrive(memory.taken[half]);

      const row_terms_of_queries terms{from.terms, first, queries, query};
      const std::uint32_t strange = any_bit(from.nonfinite);
      const pair_conditions conditions{query < seen_by_all.first || query + half_tokens > seen_by_all.last,
                                       (v_nonfinite | strange | any_bit(from.terms.nonfinite)) != 0,
                                       any_bit(from.terms.special) != 0};
      make_gradients<Recipe, Delta>(s, dp, map, terms, conditions, [](float) {});
      if (strange != 0) [[unlikely]]
        note(s, from, first);
      store<E>(s, scores_column(half), memory.p_scales[half]);
      store<G>(dp, dp_column(half), memory.ds_scales[half]);
      ptx::fence_async();
      ptx::tcgen05_wait_stores();
      place.arrive(memory.gradients[half]);
    }

    /// x, quantised per key and 32 queries, as a left operand in tensor memory.
    template <class T>
    OCTAVO_DEVICE void store(const float (&x)[half_tokens], int column, std::uint8_t* scales) const {
      std::uint32_t packed[half_tokens / 4], bytes = 0;
      OCTAVO_UNROLL
      for (int b = 0; b < half_tokens / mx_block; ++b)
        bytes |= quantise_block<T>(x, b * mx_block, packed, b * block_columns) << 8 * b;
      ptx::tcgen05_store(columns(column), packed);
      store_scales(scales, place.row, bytes);
    }
    /// Which of this key's results a NaN of dO reaches.
    OCTAVO_DEVICE void note(const float (&p)[half_tokens], const stage& from, int first) const {
      std::uint32_t packed[half_tokens / 4];
      OCTAVO_UNROLL
      for (int b = 0; b < half_tokens / mx_block; ++b) quantise_block<E>(p, b * mx_block, packed, b * block_columns);
      if (memory.poisoned.note(place.row, packed, from.dout_columns, first, from.nonfinite))
        ptx::atomic_or(&memory.noted, 1u);
    }

    /// The first group writes dV, the second dK.
    OCTAVO_DEVICE void finish(int count) const {
      ptx::sync_named(1, row_groups * ptx::group_threads);  // both groups note before any of them looks
      if (count > 0) wait_for(memory.finished, 0);
      const bool of_values = place.group == 0;
      const tensor& to = of_values ? kernel.dv : kernel.dk;
      const float factor = of_values ? 1.0f : kernel.data.forward.scale;
      const bool poisoned = of_values && memory.noted != 0;
      OCTAVO_NO_UNROLL
      for (int first = 0; first < D; first += 32) {
        float x[32] = {};
        if (count > 0) {
          ptx::tcgen05_load(x, columns((of_values ? dv_column : dk_column) + first));
          ptx::tcgen05_wait_loads(x);
        }
        OCTAVO_UNROLL
        for (int c = 0; c < 32; ++c) {
          x[c] *= factor;
          if (poisoned && memory.poisoned.holds(place.row, first + c)) x[c] = detail::float_nan();
        }
        if (exists)
          write_row(
              to,
              element_offset(to, kernel.data.forward.kv_docs, tile.document, tile.first + place.row, at.h_kv) + first,
              x);
      }
    }
  };
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
