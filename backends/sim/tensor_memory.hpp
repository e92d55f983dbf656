// SPDX-License-Identifier: Apache-2.0
// Tensor memory: 128 lanes x 512 columns of 32 bits, allocated by columns. Beside the values it is known, for each
// column of a group of 32 lanes (what one warp reaches), whether it was written and which operations touched it last. An
// operation that touches a column must know (order.hpp) that those before it have ended, or follow them in one pipeline.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/order.hpp>
#include <octavo/backends/sim/proxy.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr int tensor_lanes = 128, tensor_columns = 512, tensor_groups = 4, group_of_lanes = 32;

/// A column of a group of lanes.
struct tensor_piece {
  bool allocated = false, written = false;
  access writer{};
  std::vector<access> readers{};
};

struct tensor_allocation {
  int column, columns, warp;
  site where;
};

struct tensor_state {
  std::vector<std::uint32_t> cells = std::vector<std::uint32_t>(tensor_lanes * tensor_columns, 0x7fc0dead);
  std::array<tensor_piece, tensor_groups * tensor_columns> pieces{};
  std::vector<tensor_allocation> allocations{};
  bool relinquished = false;
  site relinquished_at{};

  std::uint32_t& cell(int lane, int column) { return cells[static_cast<std::size_t>(lane * tensor_columns + column)]; }
  tensor_piece& piece(int group, int column) {
    return pieces[static_cast<std::size_t>(group * tensor_columns + column)];
  }
};

inline tensor_state& tensors_of(block& home) {
  if (home.tensors == nullptr) home.tensors = std::make_shared<tensor_state>();
  return *home.tensors;
}

inline std::string range_text(int first, int count) {
  return count == 1 ? std::to_string(first) : std::to_string(first) + " to " + std::to_string(first + count - 1);
}

/// Lanes of a group and columns, as an operation names them.
struct tensor_region {
  int first_group, groups, column, columns;
};
inline std::string text_of(const tensor_region& r) {
  return "lanes " + range_text(r.first_group * group_of_lanes, r.groups * group_of_lanes) + ", columns " +
         range_text(r.column, r.columns);
}

inline const char* name_of(tensor_use use) {
  switch (use) {
    case tensor_use::load:
      return "a load";
    case tensor_use::store:
      return "a store";
    case tensor_use::product:
      return "a product";
    case tensor_use::copy_scales:
      return "a copy of scales";
    default:
      return "an operation";
  }
}

/// Whether the PTX ISA lets `mine` follow `before` without a wait ("pipelined tcgen05 instructions"): a product what a
/// copy of scales of the same thread wrote, and products of the same shape, kind and accumulators each other.
inline bool pipelined(const options& how, const access& before, const access& mine) {
  if (before.agent != mine.agent) return false;
  if (how.tensor_cores_in_order) return true;
  if (mine.use != tensor_use::product) return false;
  return before.use == tensor_use::copy_scales || (before.chain != 0 && before.chain == mine.chain);
}

[[noreturn]] inline void fault_unordered(const block& home, const thread& t, const tensor_region& r, int group,
                                         int column, const char* how, const access& before, const access& mine) {
  std::string why = "that has not been waited for";
  if (before.ended_for(t.order.heard)) {
    why = "and no tcgen05_fence_after has followed the wait or barrier by which this thread knows its end";
  } else {
    const bool own_wait = std::any_of(home.threads.begin(), home.threads.end(),
                                      [&](const thread& other) { return before.ended_for(other.order.known); });
    if (own_wait) why += " by this thread, nor do a tcgen05_fence_before and a barrier lead here from one that has";
  }
  fault(mine.where, std::string(how) + " (" + text_of(r) + ") of which " + name_of(before.use) + " (" +
                        text_of(before.where) + ") uses lanes " + range_text(group * group_of_lanes, group_of_lanes) +
                        ", column " + std::to_string(column) + ", " + why);
}

/// The operation of thread t touches a region.
inline void touch_region(block& home, const thread& t, const tensor_region& r, const access& mine, bool reads,
                         bool writes, const char* name) {
  const std::string what =
      std::string(reads ? "reads " : "writes ") + name + (reads ? " from" : " to") + " tensor memory";
  if (r.column < 0 || r.columns <= 0 || r.column + r.columns > tensor_columns)
    fault(mine.where, what + " beyond its end: columns " + range_text(r.column, r.columns) + " of 512");
  tensor_state& memory = tensors_of(home);
  const options& how = active_machine()->options;
  for (int group = r.first_group; group < r.first_group + r.groups; ++group)
    for (int column = r.column; column < r.column + r.columns; ++column) {
      tensor_piece& piece = memory.piece(group, column);
      if (!piece.allocated)
        fault(mine.where, what + " that is not allocated: " + text_of(r) + ", of which column " +
                              std::to_string(column) + " is free");
      if (reads && !piece.written)
        fault(mine.where, what + " (" + text_of(r) + ") of which nothing has written lanes " +
                              range_text(group * group_of_lanes, group_of_lanes) + ", column " +
                              std::to_string(column));
      if (!piece.writer.ended_for(t.order.known) && !pipelined(how, piece.writer, mine))
        fault_unordered(home, t, r, group, column, what.c_str(), piece.writer, mine);
      if (!writes) {
        put_reader(piece.readers, mine);
        continue;
      }
      for (const access& reader : piece.readers)
        if (!reader.ended_for(t.order.known) && !pipelined(how, reader, mine))
          fault_unordered(home, t, r, group, column, what.c_str(), reader, mine);
      piece.readers.clear();
      piece.writer = mine;
      piece.written = true;
    }
}

/// Takes columns for the warp of thread t: the first that are free, or with odd seeds the last, as other blocks of the
/// multiprocessor may hold some.
inline int allocate_columns(block& home, const thread& t, int columns, bool from_behind, const site& where) {
  if (columns < 32 || columns > tensor_columns || !std::has_single_bit(static_cast<unsigned>(columns)))
    fault(where, "allocates " + std::to_string(columns) + " columns: not 32, 64, 128, 256 or 512");
  tensor_state& memory = tensors_of(home);
  if (memory.relinquished)
    fault(where, "allocates tensor memory after tcgen05_relinquish (" + text_of(memory.relinquished_at) + ")");
  int found = -1, run = 0;
  for (int i = 0; i < tensor_columns && found < 0; ++i) {
    const int column = from_behind ? tensor_columns - 1 - i : i;
    run = memory.piece(0, column).allocated ? 0 : run + 1;
    if (run == columns) found = from_behind ? column : column - columns + 1;
  }
  if (found < 0) {
    std::string held;
    for (const tensor_allocation& a : memory.allocations)
      held += "; " + std::to_string(a.columns) + " are held by " + text_of(a.where);
    fault(where, "allocates " + std::to_string(columns) + " columns, for which it would wait for ever" + held);
  }
  for (int group = 0; group < tensor_groups; ++group)
    for (int column = found; column < found + columns; ++column) {
      memory.piece(group, column) = {};
      memory.piece(group, column).allocated = true;
    }
  memory.allocations.push_back({found, columns, t.index / home.warp_lanes, where});
  return found;
}

/// Gives columns back for the running thread's warp, which must know that all that used them has ended.
inline void free_columns(block& home, const thread& t, std::uint32_t address, int columns, const site& where) {
  tensor_state& memory = tensors_of(home);
  const auto at = std::find_if(memory.allocations.begin(), memory.allocations.end(), [&](const tensor_allocation& a) {
    return static_cast<std::uint32_t>(a.column) == address;
  });
  if (at == memory.allocations.end() || at->columns != columns)
    fault(where, "frees " + std::to_string(columns) + " columns from lane " + std::to_string(address >> 16) +
                     ", column " + std::to_string(address & 0xffff) + " on, which no tcgen05_alloc gave so");
  const tensor_region all{0, tensor_groups, at->column, columns};
  const access mine{-1, 0, tensor_use::none, 0, where};
  for (int group = 0; group < tensor_groups; ++group)
    for (int column = at->column; column < at->column + columns; ++column) {
      tensor_piece& piece = memory.piece(group, column);
      if (!piece.writer.ended_for(t.order.known))
        fault_unordered(home, t, all, group, column, "frees tensor memory", piece.writer, mine);
      for (const access& reader : piece.readers)
        if (!reader.ended_for(t.order.known))
          fault_unordered(home, t, all, group, column, "frees tensor memory", reader, mine);
      piece = {};
    }
  memory.allocations.erase(at);
}

inline void check_tensor_memory_freed(const block& b) {
  if (b.tensors == nullptr || b.tensors->allocations.empty()) return;
  const tensor_allocation& a = b.tensors->allocations.front();
  fault("block " + std::to_string(b.index) + " ended with " + std::to_string(a.columns) +
        " columns of tensor memory that its warp " + std::to_string(a.warp) + " took and has not freed (" +
        text_of(a.where) + ")");
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
