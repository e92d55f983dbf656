// SPDX-License-Identifier: Apache-2.0
// The fifth-generation tensor cores: products, copies of scales and commits. At its issue an operation is checked against
// all that touched its operands before, and its operands in shared memory are noted; it reads and writes when its task
// runs (tasks.hpp). Shared memory that is different then was written while it could be read.
#pragma once

#include <octavo/backends/sim/copies.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/proxy.hpp>
#include <octavo/backends/sim/tasks.hpp>
#include <octavo/backends/sim/tensor_memory.hpp>
#include <octavo/backends/sim/tensor_operands.hpp>
#include <octavo/backends/sim/tensor_product.hpp>
#include <octavo/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// Operands of a product as its instruction gets them: bits of addresses and descriptors.
struct issued_product {
  std::uint32_t d = 0;
  std::uint64_t a = 0, b = 0;  ///< a: a descriptor, or a tensor_address
  std::uint32_t how = 0;
  bool accumulate = false, a_in_tensor_memory = false, scaled = false;
  std::uint32_t a_scales = 0, b_scales = 0;
};

namespace detail {

inline access next_tensor_access(block& home, const thread& t, tensor_use use, std::uint64_t chain, const site& where) {
  const int agent = home.agents.of(agents::tensor_cores, static_cast<std::uint32_t>(t.index));
  if constexpr (checks::on) checks::issue_tensor_operation();
  return {agent, home.agents.next(agent, where), use, chain, where};
}

/// The column of an address of whole columns.
inline int column_of(std::uint32_t address, const char* name, const site& where) {
  if (address >> 16 != 0)
    fault(where, std::string("gives ") + name + " in lane " + std::to_string(address >> 16) + ": it begins in lane 0");
  return static_cast<int>(address & 0xffff);
}

inline int scale_columns(int rows) { return (rows + group_of_lanes - 1) / group_of_lanes; }

/// An operand in shared memory, with what stood there at the time of issue.
struct noted_operand {
  decoded_operand layout{};
  std::vector<char> bytes{};

  static noted_operand note(block& home, const thread& t, const decoded_operand& layout, const access& mine,
                            const char* name) {
    noted_operand noted{layout, {}};
    layout.for_chunks([&](int, int, std::uint32_t at) {
      read_piece(home, t, at, mine, name);
      if constexpr (checks::on) checks::tensor_operation_reads(at, 16, mine.where);
      noted.bytes.insert(noted.bytes.end(), home.shared + at, home.shared + at + 16);
    });
    return noted;
  }
  /// f(line, chunk, its 16 bytes), now.
  template <class F>
  void read(const block& home, const char* name, const site& where, F f) const {
    std::size_t i = 0;
    layout.for_chunks([&](int line, int chunk, std::uint32_t at) {
      if (std::memcmp(&bytes[i], home.shared + at, 16) != 0)
        fault(where, std::string("reads ") + name + " at offset " + std::to_string(at) +
                         ", which was written after the issue and before the end");
      f(line, chunk, reinterpret_cast<const std::uint8_t*>(&bytes[i]));
      i += 16;
    });
  }
  /// To [rows][32].
  void read_matrix(const block& home, const char* name, const site& where, std::uint8_t* to) const {
    read(home, name, where, [&](int line, int chunk, const std::uint8_t* from) {
      for (int i = 0; i < 16; ++i)
        to[layout.transposed ? (16 * chunk + i) * mma_depth + line : line * mma_depth + 16 * chunk + i] = from[i];
    });
  }
};

/// Scales of `rows` rows from tensor memory: of row r in lane r % 32, column r / 32, and again in each group of lanes.
inline void read_scales(block& home, int column, int byte, int rows, std::uint8_t* to, const char* name,
                        const site& where) {
  tensor_state& memory = tensors_of(home);
  for (int r = 0; r < rows; ++r) {
    const auto scale = [&](int group) {
      return static_cast<std::uint8_t>(
          memory.cell(group * group_of_lanes + r % group_of_lanes, column + r / group_of_lanes) >> 8 * byte);
    };
    for (int group = 1; group < tensor_groups; ++group)
      if (scale(group) != scale(0))
        fault(where, std::string("finds different ") + name + " for row " + std::to_string(r) +
                         " in lanes 0 to 31 and " + range_text(group * group_of_lanes, group_of_lanes));
    to[r] = scale(0);
  }
}

struct product_task {
  block* home;
  issued_product p;
  ptx::instruction_descriptor how;
  noted_operand a, b;
  site where;

  void operator()(machine& m) const {
    static thread_local mma_operands x;
    static thread_local std::array<float, mma_rows * mma_most_columns> sums;
    tensor_state& memory = tensors_of(*home);
    if (p.a_in_tensor_memory) {
      const int column = static_cast<int>(p.a & 0xffff);
      for (int row = 0; row < mma_rows; ++row)
        for (int c = 0; c < mma_depth / 4; ++c)
          std::memcpy(&x.a[static_cast<std::size_t>(row * mma_depth + 4 * c)], &memory.cell(row, column + c), 4);
    } else {
      a.read_matrix(*home, "A", where, x.a.data());
    }
    b.read_matrix(*home, "B", where, x.b.data());
    x.a_scale.fill(127);
    x.b_scale.fill(127);
    if (p.scaled) {
      read_scales(*home, static_cast<int>(p.a_scales & 0xffff), static_cast<int>(how.a_scale_byte), mma_rows,
                  x.a_scale.data(), "scales of A", where);
      read_scales(*home, static_cast<int>(p.b_scales & 0xffff), static_cast<int>(how.b_scale_byte), how.columns,
                  x.b_scale.data(), "scales of B", where);
    }
    const int d = static_cast<int>(p.d & 0xffff);
    for (int row = 0; row < mma_rows; ++row) {
      float* of_row = &sums[static_cast<std::size_t>(row * how.columns)];
      if (p.accumulate)
        std::memcpy(of_row, &memory.cell(row, d), static_cast<std::size_t>(how.columns) * 4);
      else
        std::fill_n(of_row, how.columns, 0.0f);
    }
    multiply_scaled(x, static_cast<fp8>(how.a_type), static_cast<fp8>(how.b_type), sums.data(), how.columns,
                    m.options.accumulator);
    for (int row = 0; row < mma_rows; ++row)
      std::memcpy(&memory.cell(row, d), &sums[static_cast<std::size_t>(row * how.columns)],
                  static_cast<std::size_t>(how.columns) * 4);
    ++m.report.products;
    ++m.report.matrix_instructions["tcgen05 " + std::string(p.scaled ? "mxf8f6f4" : "f8f6f4") + " m128n" +
                                   std::to_string(how.columns) + "k32"];
  }
};

struct commit_task {
  block* home;
  clock all;  ///< what is told
  std::uint32_t offset;
  int issuer;
  std::uint32_t last;  ///< operation of the issuer
  site where;

  void operator()(machine&) const {
    barrier_word barrier = load_barrier(*home, offset, where);
    if (barrier.pending == 0)
      fault(where, "commits to " + name_of_barrier(offset) + " when all " + std::to_string(barrier.expected) +
                       " arrivals of the phase have come");
    --barrier.pending;
    home->phases[offset].coming.join(all);
    if constexpr (checks::on) checks::finish_tensor_operations(home->index, issuer, last, offset);
    store_barrier(*home, offset, barrier, where);
  }
};

}  // namespace detail

/// One thread issues a product.
inline void issue_product(const issued_product& p, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  thread& t = this_thread();
  block& home = *t.home;
  const ptx::instruction_descriptor how = decode_instruction(p.how, p.scaled, where);
  const int d = detail::column_of(p.d, "D", where);
  // Products follow each other in a pipeline by the same accumulators, N and kind.
  const std::uint64_t chain = std::uint64_t{1} << 63 | static_cast<std::uint64_t>(p.scaled) << 62 |
                              static_cast<std::uint64_t>(how.columns) << 32 | p.d;
  const access mine = detail::next_tensor_access(home, t, tensor_use::product, 0, where);
  access of_d = mine;
  of_d.chain = chain;
  detail::product_task task{&home, p, how, {}, {}, where};

  if (p.a_in_tensor_memory) {
    if (how.a_major == ptx::major::r) fault(where, "takes A from tensor memory as transposed");
    const int a = detail::column_of(static_cast<std::uint32_t>(p.a), "A", where);
    touch_region(home, t, {0, tensor_groups, a, mma_depth / 4}, mine, true, false, "A");
  } else {
    task.a = detail::noted_operand::note(
        home, t, decode_operand(home, p.a, mma_rows, how.a_major == ptx::major::r, "A", where), mine, "A");
  }
  task.b = detail::noted_operand::note(
      home, t, decode_operand(home, p.b, how.columns, how.b_major == ptx::major::r, "B", where), mine, "B");
  if (p.scaled) {
    const int a = detail::column_of(p.a_scales, "scales of A", where);
    const int b = detail::column_of(p.b_scales, "scales of B", where);
    touch_region(home, t, {0, tensor_groups, a, detail::scale_columns(mma_rows)}, mine, true, false, "scales of A");
    touch_region(home, t, {0, tensor_groups, b, detail::scale_columns(how.columns)}, mine, true, false, "scales of B");
  }
  const tensor_region all{0, tensor_groups, d, how.columns};
  if (p.accumulate) touch_region(home, t, all, of_d, true, false, "D");
  touch_region(home, t, all, of_d, false, true, "D");
  issue_task(t, where, std::move(task));
}

/// One thread issues the copy of a tile of 32 x 16 bytes to four columns, in all four groups of lanes.
inline void issue_scale_copy(std::uint32_t to, std::uint64_t tile, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  thread& t = this_thread();
  block& home = *t.home;
  const int column = detail::column_of(to, "the destination of a copy of scales", where);
  const access mine = detail::next_tensor_access(home, t, tensor_use::copy_scales, 0, where);
  const decoded_operand layout = decode_operand(home, tile, 32, false, "scales", where, 1);
  if (layout.pattern != 16) fault(where, "copies scales with a swizzle, which is not modelled");
  const detail::noted_operand noted = detail::noted_operand::note(home, t, layout, mine, "scales");
  touch_region(home, t, {0, tensor_groups, column, 4}, mine, false, true, "scales");
  issue_task(t, where, [noted, column, where, &home](machine& m) {
    tensor_state& memory = tensors_of(home);
    noted.read(home, "scales", where, [&](int line, int, const std::uint8_t* from) {
      for (int group = 0; group < tensor_groups; ++group)
        std::memcpy(&memory.cell(group * group_of_lanes + line, column), from, 16);
    });
    ++m.report.matrix_instructions["tcgen05 cp 32x128b.warpx4"];
  });
}

/// At the end of a block, somebody must have waited for everything.
inline void check_products_ended(const block& b) {
  for (const auto& [who, agent] : b.agents.numbers) {
    if (who.first != agents::tensor_cores) continue;
    const std::uint32_t last = b.agents.last(agent);
    if (std::none_of(b.threads.begin(), b.threads.end(),
                     [&, agent = agent](const thread& t) { return t.order.heard.of(agent) >= last; }))
      fault("block " + std::to_string(b.index) + " ended with products, copies or commits of thread " +
            std::to_string(who.second) + " that nothing has waited for (" +
            text_of(b.agents.last_at[static_cast<std::size_t>(agent)]) + ")");
  }
}

/// Arrives at a barrier when all that the thread has issued has ended; with it goes what the thread knows.
inline void issue_commit(const void* at, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  thread& t = this_thread();
  block& home = *t.home;
  const std::uint32_t offset = barrier_offset(at, where);
  load_barrier(home, offset, where);
  if (!home.phases[offset].fenced)
    fault(where, "commits to " + name_of_barrier(offset) + ", whose init no fence_barriers has followed");
  const int agent = detail::next_tensor_access(home, t, tensor_use::none, 0, where).agent;
  clock all = t.order.heard;
  all.join(t.order.known);  // a commit is a tcgen05_fence_before as well
  const std::uint32_t last = home.agents.last(agent);
  all.raise(agent, last);
  if constexpr (checks::on) checks::commit_tensor_operations(last);
  issue_task(t, where, detail::commit_task{&home, all, offset, t.index, last, where});
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
