// SPDX-License-Identifier: Apache-2.0
// What the tests of the simulated tcgen05 share: operands laid out in shared memory by formulas of their own, and the
// frame of a kernel that multiplies them.
#pragma once

#include <octavo/backends/cuda/ptx/tcgen05.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/scaling/swizzle.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "unit/sim/support.hpp"

namespace sim_test {

using octavo::e4m3;
using octavo::e5m2;

/// Codes of a matrix [rows, depth], row-major, and what they mean.
struct code_matrix {
  int rows, depth;
  std::vector<std::uint8_t> codes;
  bool is_e5m2 = false;

  std::uint8_t code(int r, int k) const { return codes[static_cast<std::size_t>(r * depth + k)]; }
  float operator()(int r, int k) const { return is_e5m2 ? e5m2::decode(code(r, k)) : e4m3::decode(code(r, k)); }
};

/// Any finite codes, with exponents up to `most` of the field (15: all).
inline code_matrix random_codes(int rows, int depth, unsigned seed, bool is_e5m2 = false, int most = 31) {
  std::mt19937 random(seed);
  code_matrix m{rows, depth, std::vector<std::uint8_t>(static_cast<std::size_t>(rows * depth)), is_e5m2};
  for (std::uint8_t& c : m.codes) {
    float x;
    do {
      c = static_cast<std::uint8_t>(random());
      x = is_e5m2 ? e5m2::decode(c) : e4m3::decode(c);
    } while (!std::isfinite(x) || (c & 0x7f) >> (is_e5m2 ? 2 : 3) > most);
  }
  return m;
}
/// Codes of numbers up to `most` in magnitude, evenly spread.
inline code_matrix even_codes(int rows, int depth, unsigned seed, float most = 2) {
  const matrix m = random_matrix(rows, depth, seed, most);
  code_matrix c{rows, depth, std::vector<std::uint8_t>(m.x.size())};
  for (std::size_t i = 0; i < m.x.size(); ++i) c.codes[i] = code(m.x[i]);
  return c;
}

/// The address swizzle as CUTLASS writes it, Swizzle<bits, 4, 3>: XORs `bits` bits of an offset from bit 4 on with those
/// from bit 7 on.
inline int swizzle_of(int bits, int offset) {
  const int mask = ((1 << bits) - 1) << 7;
  return offset ^ (offset & mask) >> 3;
}

/// How an operand lies in shared memory: rows of `width` bytes (16: no swizzle), along K or along its rows.
struct placement {
  int width;
  bool transposed;
};
inline int bits_of(int width) { return width == 128 ? 3 : width == 64 ? 2 : width == 32 ? 1 : 0; }

/// Where element (r, k) of a matrix [rows, depth] stands.
inline int place(placement p, int rows, int depth, int r, int k) {
  const int along = p.transposed ? r : k, line = p.transposed ? k : r, lines = p.transposed ? depth : rows;
  return along / p.width * (lines * p.width) + swizzle_of(bits_of(p.width), line * p.width + along % p.width);
}

inline image placed(const code_matrix& m, placement p) {
  image out(m.rows * m.depth);
  for (int r = 0; r < m.rows; ++r)
    for (int k = 0; k < m.depth; ++k) out.data()[place(p, m.rows, m.depth, r, k)] = m.code(r, k);
  return out;
}

inline ptx::swizzle swizzle_named(int width) {
  return width == 128  ? ptx::swizzle::bytes_128
         : width == 64 ? ptx::swizzle::bytes_64
         : width == 32 ? ptx::swizzle::bytes_32
                       : ptx::swizzle::none;
}
/// The descriptor of 32 elements of K from `k` on of an operand that `placed` laid out.
inline ptx::shared_operand operand_at(const char* first, placement p, int rows, int depth, int k) {
  const ptx::swizzle s = swizzle_named(p.width);
  if (p.transposed) return ptx::shared_operand::r_major(first, s, depth).advanced(k * p.width);
  if (p.width == 16) return ptx::shared_operand::k_major(first, rows).advanced(k / 16 * rows * 16);
  return ptx::shared_operand::k_major(first + k / p.width * rows * p.width, s).advanced(k % p.width);
}
inline ptx::major major_of(placement p) { return p.transposed ? ptx::major::r : ptx::major::k; }

/// The frame of a kernel of tensor memory: at `at` in shared memory stand the address and two barriers.
struct tensor_frame {
  int at;
  int columns = 512;

  static constexpr int bytes = 32;

  ptx::tensor_address address() const {
    return *reinterpret_cast<const ptx::tensor_address*>(ptx::shared_memory() + at);
  }
  ptx::shared_barrier& barrier(int i) const { return barrier_at(at + 8 + 8 * i); }

  /// Warp 0 allocates; thread 0 initialises the barriers, for one arrival each.
  void begin() const {
    if (ptx::thread_index() < 32)
      ptx::tcgen05_alloc(reinterpret_cast<ptx::tensor_address*>(ptx::shared_memory() + at), columns);
    if (ptx::thread_index() == 0) {
      barrier(0).init(1);
      barrier(1).init(1);
      ptx::fence_barriers();
    }
    sync();
  }
  static void sync() {
    ptx::tcgen05_fence_before();
    ptx::sync_block();
    ptx::tcgen05_fence_after();
  }
  /// Thread 0 loads `bytes` to the beginning of shared memory by barrier 1 (its first phase); all wait.
  void fill(const void* from, int count) const {
    if (ptx::thread_index() == 0) {
      barrier(1).arrive_expecting(count);
      ptx::bulk_load(ptx::shared_memory(), from, count, barrier(1));
    }
    barrier(1).wait(0);
  }
  void end() const {
    sync();
    if (ptx::thread_index() < 32) ptx::tcgen05_dealloc(address(), columns);
  }
};

inline image joined(const std::vector<image>& parts) {
  int bytes = 0;
  for (const image& p : parts) bytes += p.size();
  image all(bytes);
  int at = 0;
  for (const image& p : parts) {
    std::memcpy(all.data() + at, p.data(), static_cast<std::size_t>(p.size()));
    at += p.size();
  }
  return all;
}

}  // namespace sim_test
