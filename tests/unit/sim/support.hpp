// SPDX-License-Identifier: Apache-2.0
// What the tests of the simulator share: kernels made from a function, and operands.
#pragma once

#include <octavo/backends/cuda/hopper/images.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/backends/cuda/ptx/copy.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/cuda/ptx/wgmma.hpp>
#include <octavo/backends/sim/runtime.hpp>
#include <octavo/numeric/e4m3.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace sim_test {

namespace ptx = octavo::backends::ptx;
namespace sim = octavo::backends::sim;
namespace hopper = octavo::backends::hopper;

template <int kernel_threads, int kernel_shared_bytes, class Function>
struct function_kernel {
  static constexpr int threads = kernel_threads;
  static constexpr int shared_bytes = kernel_shared_bytes;
  Function function;
  std::int64_t count;
  std::int64_t blocks() const { return count; }
  void operator()() const { function(); }
};

/// Runs `function` as a kernel.
template <int threads, int shared_bytes, class Function>
sim::report launch(Function function, sim::options how = {}, std::int64_t blocks = 1) {
  return sim::launch(function_kernel<threads, shared_bytes, Function>{function, blocks}, how);
}

/// What a kernel is stopped with; empty where nothing is found.
template <int threads, int shared_bytes, class Function>
std::string fault_of(Function kernel, sim::options how = {}, std::int64_t blocks = 1) {
  try {
    launch<threads, shared_bytes>(kernel, how, blocks);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}
inline bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE("not in: " << text);
  return found;
}

/// A row-major matrix of E4M3 numbers as floats.
struct matrix {
  int rows, columns;
  std::vector<float> x;
  float operator()(int r, int c) const { return x[static_cast<std::size_t>(r * columns + c)]; }
};

inline matrix random_matrix(int rows, int columns, unsigned seed, float most = 2) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(-most, most);
  matrix m{rows, columns, std::vector<float>(static_cast<std::size_t>(rows * columns))};
  for (float& x : m.x) x = octavo::e4m3::round(draw(random));
  return m;
}

/// Bytes that a bulk copy may start from.
struct alignas(16) piece {
  std::array<std::uint8_t, 16> bytes;
};
struct image {
  std::vector<piece> pieces;
  explicit image(int bytes) : pieces(static_cast<std::size_t>((bytes + 15) / 16)) {}
  std::uint8_t* data() { return pieces.front().bytes.data(); }
  const std::uint8_t* data() const { return pieces.front().bytes.data(); }
  int size() const { return static_cast<int>(pieces.size()) * 16; }
};

inline std::uint8_t code(float x) { return octavo::e4m3::nearest_even(x).bits; }

/// Chunks of 16 bytes along K of all rows, row after row.
inline image chunked(const matrix& m) {
  image out(m.rows * m.columns);
  for (int r = 0; r < m.rows; ++r)
    for (int c = 0; c < m.columns; ++c) out.data()[(c / 16 * m.rows + r) * 16 + c % 16] = code(m(r, c));
  return out;
}

/// The image of m [tokens, channels] that contracts tokens, with `ones` rows of the number 1 below the channels.
template <hopper::token_order order>
image column_image(const matrix& m, int ones = 0) {
  const int rows = m.columns + ones;
  image out(m.rows * rows);
  for (int slot = 0; slot < m.rows; ++slot)
    for (int r = 0; r < rows; ++r)
      out.data()[hopper::column_image_at(slot, r, rows)] =
          code(r < m.columns ? m(hopper::token_of_slot<order>(slot), r) : 1.0f);
  return out;
}

/// Where element i of a lane's accumulators stands.
inline int row_of(int thread, int i) { return thread % 128 / 32 * 16 + thread % 32 / 4 + i % 4 / 2 * 8; }
inline int column_of(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

/// Begins a kernel: one thread loads `bytes` to the beginning of shared memory; the barrier stands behind. All wait.
inline void load_all(const void* from, int bytes, ptx::shared_barrier& barrier) {
  if (ptx::thread_index() == 0) {
    barrier.init(1);
    ptx::fence_barriers();
  }
  ptx::sync_block();
  if (ptx::thread_index() == 0) {
    barrier.arrive_expecting(bytes);
    ptx::bulk_load(ptx::shared_memory(), from, bytes, barrier);
  }
  barrier.wait(0);
}
inline ptx::shared_barrier& barrier_at(int offset) {
  return *reinterpret_cast<ptx::shared_barrier*>(ptx::shared_memory() + offset);
}

}  // namespace sim_test
