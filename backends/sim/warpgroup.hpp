// SPDX-License-Identifier: Apache-2.0
// wgmma: products that a warpgroup issues and waits for later. Lanes issue without stopping; a product has been issued
// when all 128 have, and runs (reads shared memory, adds up) at some time from then to the first wait that covers it. A
// lane's accumulators hold NaN from its issue until its own wait, unless the seed draws an earlier end.
#pragma once

#include <octavo/backends/sim/collective.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/product.hpp>
#include <octavo/backends/sim/proxy.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr std::uint32_t in_flight = 0x7fc0dead;  ///< a NaN that accumulators hold meanwhile

/// A matrix in shared memory as its descriptor names it (PTX ISA, "matrix descriptor").
struct descriptor {
  std::uint32_t start, along_k, along_rows;  ///< bytes; distances of core matrices (8 rows x 16 bytes)

  static descriptor decode(std::uint64_t bits) {
    const auto field = [&](int at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
    return {field(0), field(16), field(32)};
  }
  /// Offset in the block's shared memory of 16 bytes of a row.
  std::uint32_t at(int row, int chunk) const {
    return start - shared_base + static_cast<std::uint32_t>(chunk) * along_k +
           static_cast<std::uint32_t>(row / 8) * along_rows + static_cast<std::uint32_t>(row % 8) * 16;
  }
};

inline void check_matrix(const block& home, std::uint64_t bits, int rows, const char* name, const site& where) {
  if (bits >> 62 != 0)
    fault(where, std::string("gives a descriptor of ") + name + " with a swizzle, which is not modelled");
  if ((bits & ~0x00003fff3fff3fffull) != 0)
    fault(where, std::string("gives a descriptor of ") + name + " with a field out of its range");
  const descriptor d = descriptor::decode(bits);
  for (int row = 0; row < rows; row += 8)
    for (int chunk = 0; chunk < 2; ++chunk) {
      const std::uint32_t address = d.at(row, chunk) + shared_base;
      if (address < shared_base || address - shared_base + 128 > static_cast<std::uint32_t>(home.shared_bytes))
        fault(where, std::string("multiplies ") + name + " from outside of shared memory: rows " + std::to_string(row) +
                         " to " + std::to_string(row + 7) + ", chunk " + std::to_string(chunk) + " at offset " +
                         std::to_string(static_cast<std::int64_t>(address) - shared_base) + " of " +
                         std::to_string(home.shared_bytes) + " bytes");
    }
}

/// Where row and column of a fragment's element stand (PTX ISA, "wgmma register fragments").
inline int row_of_lane(int lane) { return lane / 32 * 16 + lane % 32 / 4; }
inline int element_at(int lane, int i, int columns) {
  return (row_of_lane(lane) + i % 4 / 2 * 8) * columns + i / 4 * 8 + lane % 4 * 2 + i % 2;
}

/// The lane's part of the results, where no product writes it any more.
inline void deliver(const block& home, accumulators& d, int lane) {
  const auto at = static_cast<std::size_t>(lane);
  if (d.delivered[at] || d.at[at] == nullptr) return;
  d.delivered[at] = true;
  for (int i = 0; i < d.columns / 2; ++i) {
    std::uint32_t now;
    std::memcpy(&now, d.at[at] + i, 4);
    if (now != in_flight)
      fault("block " + std::to_string(home.index) + ": lane " + std::to_string(lane) +
            " of a warpgroup wrote accumulator " + std::to_string(i) + " while a product was in flight");
    d.at[at][i] = d.values[static_cast<std::size_t>(element_at(lane, i, d.columns))];
  }
}

/// Whether registers of an operand are not what they were at issue. The variable may be gone by now.
#if defined(OCTAVO_SIM_ASAN)
__attribute__((no_sanitize("address")))
#endif
inline bool
changed(const std::uint32_t* now, const std::array<std::uint32_t, 4>& then) {
  const volatile std::uint32_t* x = now;
  return x[0] != then[0] || x[1] != then[1] || x[2] != then[2] || x[3] != then[3];
}

/// Reads the operands and adds.
inline void run_product(machine& m, block& home, product& p) {
  static thread_local operand_bytes bytes;
  const auto read = [&](std::uint64_t bits, int rows, std::uint8_t* to, const char* name) {
    const descriptor d = descriptor::decode(bits);
    for (int row = 0; row < rows; ++row)
      for (int chunk = 0; chunk < 2; ++chunk) {
        const std::uint32_t at = d.at(row, chunk);
        check_published(home, at, name, p.where);
        std::memcpy(to + row * product_depth + chunk * 16, home.shared + at, 16);
      }
  };
  if (p.from_registers) {
    bytes.a = p.registers;
    for (std::size_t lane = 0; m.options.check_operand_registers && lane < group_lanes; ++lane)
      if (changed(p.operand[lane], p.operand_values[lane]))
        fault(p.where, "issued a product that reads A from registers, and lane " + std::to_string(lane) +
                           " of the warpgroup changed them before waiting for it (where it is a variable whose scope "
                           "was left, the device has other registers: options::check_operand_registers)");
  } else {
    read(p.a, product_rows, bytes.a.data(), "A");
  }
  read(p.b, p.columns, bytes.b.data(), "B");
  if (!p.accumulate) std::fill(p.d->values.begin(), p.d->values.end(), 0.0f);
  multiply(bytes, p.d->values.data(), p.columns, m.options.accumulator);
  p.done = true;
  --p.d->pending;
  ++m.report.products;
  ++m.report.matrix_instructions["wgmma m64n" + std::to_string(p.columns) + "k32"];
}

/// Runs products in order until `until` have run, as far as all lanes have issued them.
inline void run_products(machine& m, block& home, warpgroup& g, std::int64_t until) {
  while (g.run < until && g.run < g.first + static_cast<std::int64_t>(g.products.size())) {
    product& p = *g.products[static_cast<std::size_t>(g.run - g.first)];
    if (p.joined < group_lanes) return;
    run_product(m, home, p);
    ++g.run;
    while (!g.products.empty() && g.products.front()->done) {
      g.products.pop_front();
      ++g.first;
    }
  }
}

/// Ends as many products as the seed draws, before anything waits for them.
inline void run_products_early(machine& m, block& home, warpgroup& g) {
  run_products(m, home, g, g.run + 1 + static_cast<std::int64_t>(m.random.below(4)));
  for (const std::shared_ptr<accumulators>& d : g.live)
    if (d->pending == 0 && m.one_in(2))
      for (int lane = 0; lane < group_lanes; ++lane) deliver(home, *d, lane);
}

inline bool overlap(const float* a, const float* b, int count_a, int count_b) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + static_cast<std::size_t>(count_b) * 4 && y < x + static_cast<std::size_t>(count_a) * 4;
}

/// The accumulators that this lane names, if a product of it that has not been waited for writes them.
inline std::shared_ptr<accumulators> find_live(warpgroup& g, int lane, const float* d, int columns, const site& where) {
  const auto at = static_cast<std::size_t>(lane);
  for (const std::shared_ptr<accumulators>& live : g.live) {
    if (live->at[at] == nullptr || live->delivered[at]) continue;
    if (live->at[at] == d && live->columns == columns) return live;
    if (overlap(live->at[at], d, live->columns / 2, columns / 2))
      fault(where, "issues a product into accumulators that overlap those of another in flight");
  }
  return nullptr;
}

inline void check_register_fence(machine& m, thread& t, const float* d, bool from_registers, const site& where) {
  const bool chained = std::any_of(t.in_use.begin(), t.in_use.end(), [&](const auto& use) { return use.at == d; });
  if (m.options.check_fences && !t.fenced && (from_registers || !chained))
    fault(where, "issues a product without a wgmma_fence since it last could touch the registers (its last wait)");
  const auto use = std::find_if(t.in_use.begin(), t.in_use.end(), [&](const auto& u) { return u.at == d; });
  if (use != t.in_use.end())
    use->product = t.issued;
  else
    t.in_use.push_back({d, t.issued});
}

/// The product reads shared memory from now on until what waits for it: after what all threads of its warpgroup have
/// seen, and before what comes after their waits.
inline void check_operands(const product& p, int group, std::int64_t number) {
  if constexpr (checks::on) {
    checks::begin_product(group, static_cast<std::uint32_t>(number + 1));
    const auto reads = [&](std::uint64_t bits, int rows) {
      const descriptor d = descriptor::decode(bits);
      for (int row = 0; row < rows; row += 8)
        for (int chunk = 0; chunk < 2; ++chunk) checks::product_reads(d.at(row, chunk), 128, p.where);
    };
    if (!p.from_registers) reads(p.a, product_rows);
    reads(p.b, p.columns);
  }
}

/// Notes that product `number` of the warpgroup reads its operands in shared memory, and which copies filled them.
inline void note_operands(block& home, product& p, int group, std::int64_t number) {
  const access mine{home.agents.of(agents::products, static_cast<std::uint32_t>(group)),
                    static_cast<std::uint32_t>(number + 1), tensor_use::product, 0, p.where};
  const auto note = [&](std::uint64_t bits, int rows) {
    const descriptor d = descriptor::decode(bits);
    for (int row = 0; row < rows; ++row)
      for (int chunk = 0; chunk < 2; ++chunk) {
        shared_piece& piece = async_of(home).pieces[d.at(row, chunk) / 16];
        put_reader(piece.readers, mine);
        const access& filler = piece.filler;
        if (filler.agent < 0) continue;
        const auto same =
            std::find_if(p.fillers.begin(), p.fillers.end(), [&](const access& a) { return a.agent == filler.agent; });
        if (same == p.fillers.end())
          p.fillers.push_back(filler);
        else if (same->time < filler.time)
          *same = filler;
      }
  };
  if (!p.from_registers) note(p.a, product_rows);
  note(p.b, p.columns);
}

/// One lane issues a product.
inline void issue_product(float* d, int columns, const std::uint32_t* a_registers, std::uint64_t a, std::uint64_t b,
                          bool accumulate, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  machine& m = the_machine();
  thread& t = *m.current;
  block& home = *t.home;
  warpgroup& g = home.group_of(t);
  const int lane = t.index % group_lanes;
  const auto at = static_cast<std::size_t>(lane);
  check_register_fence(m, t, d, a_registers != nullptr, where);

  const std::int64_t number = t.issued++;
  std::shared_ptr<accumulators> live = find_live(g, lane, d, columns, where);
  if (number == g.first + static_cast<std::int64_t>(g.products.size())) {  // the first lane to come here
    if (a_registers == nullptr) check_matrix(home, a, product_rows, "A", where);
    check_matrix(home, b, columns, "B", where);
    auto p = std::make_unique<product>();
    p->columns = columns;
    p->accumulate = accumulate;
    p->from_registers = a_registers != nullptr;
    p->a = a;
    p->b = b;
    p->group = static_cast<std::int64_t>(t.committed.size());
    p->first_lane = lane;
    p->where = where;
    if (live == nullptr) {
      live = std::make_shared<accumulators>();
      live->columns = columns;
      live->values.assign(static_cast<std::size_t>(product_rows * columns), 0.0f);
      g.live.push_back(live);
    }
    p->d = live;
    ++live->pending;
    note_operands(home, *p, t.index / group_lanes, number);
    g.products.push_back(std::move(p));
  }
  product& p = *g.products[static_cast<std::size_t>(number - g.first)];
  if (p.columns != columns || p.accumulate != accumulate || p.from_registers != (a_registers != nullptr) ||
      (a_registers == nullptr && p.a != a) || p.b != b || p.group != static_cast<std::int64_t>(t.committed.size()) ||
      (live != nullptr && live != p.d))
    fault(where, "issues product " + std::to_string(number) +
                     " of its warpgroup with other operands, accumulators or "
                     "in another group than lane " +
                     std::to_string(p.first_lane) + " (" + text_of(p.where) + ")");
  for (const access& filler : p.fillers)
    if (!filler.ended_for(t.order.heard))
      fault(where, "multiplies what a copy fills (" + text_of(filler.where) + ") that it has not waited for");
  if (p.d->at[at] == nullptr) {
    p.d->at[at] = d;
    for (int i = 0; i < columns / 2; ++i) {
      p.d->values[static_cast<std::size_t>(element_at(lane, i, columns))] = d[i];
      std::memcpy(d + i, &in_flight, 4);
    }
  } else if (p.d->delivered[at]) {
    fault(where, "issues a product into accumulators that other lanes have not waited for, as it has");
  }
  if (a_registers != nullptr) {
    p.operand[at] = a_registers;
    for (int r = 0; r < 4; ++r) {
      p.operand_values[at][static_cast<std::size_t>(r)] = a_registers[r];
      std::memcpy(&p.registers[static_cast<std::size_t>((row_of_lane(lane) + r % 2 * 8) * product_depth + lane % 4 * 4 +
                                                        r / 2 * 16)],
                  &a_registers[r], 4);
    }
  }
  if (++p.joined < group_lanes) return;
  check_operands(p, t.index / group_lanes, number);
  wake_all(g.waiting);
  if (m.one_in(3)) run_products_early(m, home, g);
}

inline void commit_products() {
  const checks::unchecked here;
  thread& t = this_thread();
  t.committed.push_back(t.issued);
}

/// Until at most `pending` groups of the lane run.
inline void wait_products(int pending, const site& where) {
  const checks::unchecked here;
  maybe_yield();
  machine& m = the_machine();
  thread& t = *m.current;
  block& home = *t.home;
  warpgroup& g = home.group_of(t);
  t.fenced = false;
  const auto groups = static_cast<std::int64_t>(t.committed.size());
  if (groups <= pending) return;
  const std::int64_t until = t.committed[static_cast<std::size_t>(groups - pending - 1)];
  for (run_products(m, home, g, until); g.run < until; run_products(m, home, g, until)) {
    g.waiting.push_back(&t);
    wait_for({.kind = wait_kind::products, .id = static_cast<int>(until), .where = where});
  }
  t.waited = std::max(t.waited, until);
  t.order.heard.raise(home.agents.of(agents::products, static_cast<std::uint32_t>(t.index / group_lanes)),
                      static_cast<std::uint32_t>(t.waited));
  if constexpr (checks::on) checks::wait_products(t.index / group_lanes, static_cast<std::uint32_t>(t.waited));
  std::erase_if(t.in_use, [&](const accumulators_in_use& use) { return use.product < until; });
  const int lane = t.index % group_lanes;
  const auto covered = [&](const accumulators& d) {  // no product that the lane has not waited for writes them
    return std::none_of(t.in_use.begin(), t.in_use.end(),
                        [&](const auto& use) { return use.at == d.at[static_cast<std::size_t>(lane)]; });
  };
  for (const std::shared_ptr<accumulators>& d : g.live)
    if (d->pending == 0 && covered(*d)) deliver(home, *d, lane);
  std::erase_if(g.live, [](const std::shared_ptr<accumulators>& d) {
    return d->pending == 0 && std::all_of(d->delivered.begin(), d->delivered.end(), [](bool yes) { return yes; });
  });
}

/// Whether a product that has been issued and has not run reads any of these bytes.
inline const product* reader_of(const block& home, std::uint32_t offset, int bytes) {
  for (const warpgroup& g : home.groups)
    for (const std::unique_ptr<product>& p : g.products) {
      if (p->done) continue;
      const auto reads = [&](std::uint64_t bits, int rows) {
        const descriptor d = descriptor::decode(bits);
        for (int row = 0; row < rows; row += 8)
          for (int chunk = 0; chunk < 2; ++chunk)
            if (const std::uint32_t at = d.at(row, chunk);
                at < offset + static_cast<std::uint32_t>(bytes) && offset < at + 128)
              return true;
        return false;
      };
      if ((!p->from_registers && reads(p->a, product_rows)) || reads(p->b, p->columns)) return p.get();
    }
  return nullptr;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
