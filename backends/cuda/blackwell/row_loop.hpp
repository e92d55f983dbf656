// SPDX-License-Identifier: Apache-2.0
// What the delta pass and the kernel of dQ share: a block takes 128 query rows of one head and walks over their key
// tiles with S = Q K^T and dP = dO V^T. Two groups of 128 threads each own one half of every tile, 64 keys, a thread a
// row: while one half is in the hands of its group, the tensor cores make the other one.
//
// Columns of tensor memory (d 128):
//
//     0-127    S, half by half            384-415   dS, 16 columns a half       424-431   scales of dS, by halves
//     128-255  dP, half by half           416-419   scales of Q                 432-467   scales of K, V and K's columns,
//     256-383  dQ                         420-423   scales of dO                          of three tiles in turn
//                                                                             468-499   Q
//
// Q is a left operand for the whole walk, and so stands in tensor memory, which spares shared memory its reading once a
// half. dO does so where there is room: in the delta pass (256-287), and at d 64 (484-499).
#pragma once

#include <octavo/backends/cuda/blackwell/rows.hpp>
#include <octavo/backends/cuda/common/block_passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

template <class Recipe>
using row_data = row_loop_data<Recipe, image_operand>;

inline constexpr int half_tokens = tile_tokens / row_groups;  ///< of a tile that a group takes

template <class Recipe, int D, bool with_gradient>
struct row_loop {
  static constexpr int threads = block_threads, blocks_per_sm = 1;
  static constexpr int stages = D <= 64 ? 4 : with_gradient ? 3 : 4;
  static constexpr int payload = tile_images::payload_bytes(D), columns_payload = with_gradient ? payload : 16;

  struct stage {
    std::uint8_t k[payload], v[payload], k_columns[columns_payload];
    std::uint8_t k_scales[scale_bytes], v_scales[scale_bytes], k_column_scales[scale_bytes];
  };
  struct shared {
    std::uint8_t q[payload], dout[payload], q_scales[scale_bytes], dout_scales[scale_bytes];
    stage ring_of[stages];
    std::uint8_t ds_scales[row_groups][scale_bytes];
    ring<stages> tiles;
    ptx::shared_barrier queries;
    ptx::shared_barrier operands;               ///< Q (and dO) are in tensor memory
    ptx::shared_barrier made[row_groups];       ///< S and dP of a half
    ptx::shared_barrier taken[row_groups];      ///< they are in registers
    ptx::shared_barrier gradients[row_groups];  ///< dS of them is in tensor memory
    ptx::shared_barrier added[row_groups];      ///< dS is in dQ
    ptx::shared_barrier summed;                 ///< every product has ended
    tensor_memory tensor;
    float parts[row_groups][3][tile_tokens];  ///< sums of a row over its halves
  };
  static constexpr int shared_bytes = sizeof(shared);

  /// Which rows a block takes. Heads one after another, the longest rows of a causal mask first.
  struct block_place {
    std::uint32_t h, slot;
    token_tile tile;
  };
  OCTAVO_DEVICE static block_place here(const row_data<Recipe>& d) {
    const std::uint32_t block = block_number(), slots = narrow(d.q.slots), slot = slots - 1 - block % slots;
    return {block / slots, slot, tile_of_slot<tile_tokens>(d.backward.forward.q_docs, slot)};
  }

  /// Makes a Kernel::row for each thread that owns one and calls its run(all); copies and multiplies on the others.
  template <class Kernel>
  OCTAVO_DEVICE static void run(const Kernel& kernel) {
    auto& memory = *reinterpret_cast<shared*>(ptx::shared_memory());
    start(memory);
    const block_place block = here(kernel.data);
    if (block.tile.tokens > 0) take_role(kernel, memory, block);
    memory.tensor.give_back();
  }

 private:
  template <class Kernel>
  OCTAVO_DEVICE static void take_role(const Kernel& kernel, shared& memory, const block_place& block) {
    const row_data<Recipe>& d = kernel.data;
    const pass_data<Recipe>& forward = d.backward.forward;
    const head_of_document at = head_of(forward, block.tile.document, block.h);
    const key_ranges ranges = forward.ranges(at);
    const visible_tiles tiles =
        visible_tiles::of(ranges, block.tile.first, block.tile.tokens, block.tile.tokens == tile_tokens);
    const std::int64_t first_kv_slot = at.kv.length == 0 ? 0 : forward.kv_docs.first_slot(at.document, tile_tokens);
    const int kv_tile = d.k.tile(at.h_kv, first_kv_slot), q_tile = d.q.tile(block.h, block.slot);
    const bool any = tiles.any.last > tiles.any.first;
    const int warp = ptx::uniform(ptx::thread_index() / ptx::warp_threads);
    if (ptx::thread_index() < ptx::group_threads) {
      ptx::lower_registers<issuing_registers>();
      if (warp == copying_warp && any && ptx::elect_one()) copy_tiles(d, memory, q_tile, kv_tile, tiles.any);
      if (warp == multiplying_warp && any && ptx::elect_one()) multiply(memory, tiles.any);
    } else {
      ptx::raise_registers<row_registers>();
      typename Kernel::row{{kernel, memory, at, block.tile, ranges, tiles, kv_tile, q_tile}}.run();
    }
  }

 public:
  // The columns of tensor memory.
  OCTAVO_HD static constexpr int scores_column(int half) { return half_tokens * half; }
  OCTAVO_HD static constexpr int dp_column(int half) { return tile_tokens + half_tokens * half; }
  static constexpr int dq_column = 2 * tile_tokens;
  OCTAVO_HD static constexpr int ds_column(int half) { return 384 + half_tokens / 4 * half; }
  static constexpr int q_scales_column = 416, dout_scales_column = 420;
  OCTAVO_HD static constexpr int ds_scales_column(int half) { return 424 + ptx::scale_tile_columns * half; }
  static constexpr int q_column = 468;
  static constexpr bool has_dout_columns = !with_gradient || D <= 64;
  static constexpr int dout_column = with_gradient ? q_column + D / 4 : dq_column;
  static_assert(dout_column + D / 4 <= ptx::tensor_columns || !has_dout_columns);
  static constexpr int scale_slots = 3;
  OCTAVO_HD static constexpr int k_scales_column(int slot) { return 432 + 3 * ptx::scale_tile_columns * slot; }
  OCTAVO_HD static constexpr int v_scales_column(int slot) { return k_scales_column(slot) + ptx::scale_tile_columns; }
  OCTAVO_HD static constexpr int k_column_scales_column(int slot) {
    return k_scales_column(slot) + 2 * ptx::scale_tile_columns;
  }

  /// What a thread knows of its row; the rows of the kernels are made from it.
  template <class Kernel>
  struct row_of_group {
    const Kernel& kernel;
    shared& memory;
    const head_of_document& at;
    const token_tile& tile;
    const key_ranges& ranges;
    const visible_tiles& tiles;
    int kv_tile, q_tile;  ///< the first key tile's image, and the rows' own

    row_place place = row_place::here();
    bool exists = place.row < tile.tokens;
    row_keys keys = exists ? row_keys::of(ranges, tile.first + place.row) : row_keys{};
    score_map<functions> map = score_map<functions>::of(forward().scale, forward().problem.softcap);
    std::uint32_t rows_nonfinite = any_bit(kernel.data.dout.nonfinite(q_tile));

    OCTAVO_DEVICE const pass_data<Recipe>& forward() const { return kernel.data.backward.forward; }
    /// Where the row's statistics stand.
    OCTAVO_DEVICE std::int64_t statistic() const {
      return forward().statistic(at.document, at.h_q, tile.first + (exists ? place.row : 0));
    }
    OCTAVO_DEVICE ptx::tensor_address columns(int first) const {
      return place.lanes_of(memory.tensor.first.column(first));
    }
    /// Calls visit(s, dp, first key, strange) for every tile's half; strange: V or dO hold something that is not finite
    /// or so large that dP may overflow.
    template <class Visit>
    OCTAVO_DEVICE void visit_all(Visit visit) {
      if (tiles.any.last > tiles.any.first) bring_operand();
      int parity = 0;
      OCTAVO_NO_UNROLL
      for (int t = tiles.any.first; t < tiles.any.last; ++t, parity ^= 1) {
        const std::uint32_t strange = any_bit(kernel.data.v.nonfinite(kv_tile + t)) | rows_nonfinite;
        float s[half_tokens], dp[half_tokens];
        wait_for(memory.made[place.group], parity);
        ptx::tcgen05_load(s, columns(scores_column(place.group)));
        ptx::tcgen05_load(dp, columns(dp_column(place.group)));
        ptx::tcgen05_wait_loads(s, dp);
        place.arrive(memory.taken[place.group]);
        visit(s, dp, t, strange != 0);
      }
    }
    /// Leaves a half's dS in tensor memory: store() when the one before is in dQ.
    template <class Store>
    OCTAVO_DEVICE void leave_gradients(int t, Store store) {
      if (t > tiles.any.first) wait_for(memory.added[place.group], (t - tiles.any.first - 1) & 1);
      store();
      place.arrive(memory.gradients[place.group]);
    }
    /// The first group brings Q from shared to tensor memory, the second dO.
    OCTAVO_DEVICE void bring_operand() const {
      if (place.group != 0 && !has_dout_columns) return;
      const std::uint8_t* const rows = place.group == 0 ? memory.q : memory.dout;
      std::uint32_t words[D / 4];
      memory.queries.wait(0);
      OCTAVO_UNROLL
      for (int c = 0; c < D; c += chunk_bytes)
        std::memcpy(words + c / 4, __builtin_assume_aligned(rows + row_image_at(place.row, c), chunk_bytes),
                    chunk_bytes);
      ptx::tcgen05_store(columns(place.group == 0 ? q_column : dout_column), words);
      ptx::tcgen05_wait_stores();
      place.arrive(memory.operands);
    }
    OCTAVO_DEVICE int first_key(int t) const { return t * tile_tokens + place.group * half_tokens; }
    /// The sum of a value over the row's two halves. All threads of both groups.
    OCTAVO_DEVICE void publish(int index, float x) const { memory.parts[place.group][index][place.row] = x; }
    OCTAVO_DEVICE float part(int half, int index) const { return memory.parts[half][index][place.row]; }
    OCTAVO_DEVICE static void sync_rows() { ptx::sync_named(1, row_groups * ptx::group_threads); }
  };

 private:
  OCTAVO_DEVICE static void start(shared& memory) {
    if (ptx::thread_index() == 0) {
      memory.tiles.init(1);
      memory.queries.init(1);
      memory.operands.init(group_arrivals * (has_dout_columns ? 2 : 1));
      memory.summed.init(1);
      for (int half = 0; half < row_groups; ++half) {
        memory.made[half].init(1);
        memory.taken[half].init(group_arrivals);
        memory.gradients[half].init(group_arrivals);
        memory.added[half].init(1);
      }
      ptx::fence_barriers();
    }
    memory.tensor.take();
  }

  OCTAVO_DEVICE static void copy_tiles(const row_data<Recipe>& d, shared& memory, int q_tile, int kv_tile,
                                       tile_run run) {
    memory.queries.arrive_expecting(2 * (payload + scale_bytes));
    ptx::bulk_load(memory.q, d.q.rows(q_tile, D), payload, memory.queries);
    ptx::bulk_load(memory.q_scales, d.q.row_scales(q_tile), scale_bytes, memory.queries);
    ptx::bulk_load(memory.dout, d.dout.rows(q_tile, D), payload, memory.queries);
    ptx::bulk_load(memory.dout_scales, d.dout.row_scales(q_tile), scale_bytes, memory.queries);
    ring_place<stages> place;
    OCTAVO_NO_UNROLL
    for (int t = run.first; t < run.last; ++t, place.advance()) {
      stage& to = memory.ring_of[place.stage];
      const int from = kv_tile + t;
      place.wait_empty(memory.tiles);
      ptx::shared_barrier& full = memory.tiles.full[place.stage];
      full.arrive_expecting((with_gradient ? 3 : 2) * (payload + scale_bytes));
      ptx::bulk_load(to.k, d.k.rows(from, D), payload, full);
      ptx::bulk_load(to.k_scales, d.k.row_scales(from), scale_bytes, full);
      ptx::bulk_load(to.v, d.v.rows(from, D), payload, full);
      ptx::bulk_load(to.v_scales, d.v.row_scales(from), scale_bytes, full);
      if constexpr (with_gradient) {
        ptx::bulk_load(to.k_columns, d.k.columns(from, D), payload, full);
        ptx::bulk_load(to.k_column_scales, d.k.column_scales(from), scale_bytes, full);
      }
    }
  }

  /// The thread that issues all products: S and dP of a half when its group has taken the one before, and then, with dS
  /// of that one, dQ.
  OCTAVO_DEVICE static void multiply(shared& memory, tile_run run) {
    const ptx::tensor_address tensor = memory.tensor.first;
    const ptx::tensor_address q_scales = tensor.column(q_scales_column);
    const ptx::tensor_address dout_scales = tensor.column(dout_scales_column);
    ring_place<stages> place, before;
    int slot = 0, slot_before = 0;
    memory.queries.wait(0);
    copy_scales(q_scales, memory.q_scales);
    copy_scales(dout_scales, memory.dout_scales);
    wait_for(memory.operands, 0);
    const auto dout = [&] {
      if constexpr (has_dout_columns)
        return tensor.column(dout_column);
      else
        return operand_of(memory.dout);
    }();
    OCTAVO_NO_UNROLL
    for (int t = run.first; t < run.last; ++t) {
      const stage& from = memory.ring_of[place.stage];
      const ptx::tensor_address k_scales = tensor.column(k_scales_column(slot));
      const ptx::tensor_address v_scales = tensor.column(v_scales_column(slot));
      place.wait_full(memory.tiles);
      copy_scales(k_scales, from.k_scales);
      copy_scales(v_scales, from.v_scales);
      if constexpr (with_gradient) copy_scales(tensor.column(k_column_scales_column(slot)), from.k_column_scales);
      for (int half = 0; half < row_groups; ++half) {
        const int first = half * half_tokens;
        if (t > run.first) wait_for(memory.taken[half], (t - run.first - 1) & 1);
        multiply_rows<D, half_tokens>(tensor.column(scores_column(half)), tensor.column(q_column), q_scales, from.k,
                                      k_scales, first);
        multiply_rows<D, half_tokens>(tensor.column(dp_column(half)), dout, dout_scales, from.v, v_scales, first);
        ptx::tcgen05_commit(memory.made[half]);
        if (t > run.first) add_half(memory, half, before.stage, slot_before, t - run.first - 1);
      }
      if constexpr (!with_gradient)
        ptx::tcgen05_commit(memory.tiles.empty[place.stage]);
      else if (t > run.first)
        ptx::tcgen05_commit(memory.tiles.empty[before.stage]);
      before = place, slot_before = slot;
      place.advance();
      slot = slot + 1 < scale_slots ? slot + 1 : 0;
    }
    for (int half = 0; half < row_groups; ++half)
      add_half(memory, half, before.stage, slot_before, run.last - run.first - 1);
    end_products(memory.summed);
  }
  /// What dS of a half of the nth tile adds to dQ.
  OCTAVO_DEVICE static void add_half(shared& memory, int half, int stage, int slot, int nth) {
    if constexpr (with_gradient) {
      wait_for(memory.gradients[half], nth & 1);
      const ptx::tensor_address tensor = memory.tensor.first, ds_scales = tensor.column(ds_scales_column(half));
      copy_scales(ds_scales, memory.ds_scales[half]);
      multiply_columns<D, half_tokens>(tensor.column(dq_column), tensor.column(ds_column(half)), ds_scales,
                                       memory.ring_of[stage].k_columns, tensor.column(k_column_scales_column(slot)),
                                       half * half_tokens, nth > 0 || half > 0);
      ptx::tcgen05_commit(memory.added[half]);
    }
  }
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
