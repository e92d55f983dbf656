// SPDX-License-Identifier: Apache-2.0
// The kernel in which the tests of detectors plant their faults: one product of two tiles of ones.
#pragma once

#include <string>

#include "unit/sim/support.hpp"

namespace sim_test::faulty {

inline constexpr int tile_bytes = 64 * 32;  // 64 rows of 32 bytes
inline constexpr int shared_bytes = 4 * tile_bytes + 64;
inline constexpr int barriers = 4 * tile_bytes;

template <int threads = 128, class Function>
std::string fault_of(Function kernel, sim::options how = {}) {
  return sim_test::fault_of<threads, shared_bytes>(kernel, how);
}

inline const image& tile() {
  static const image ones = [] {
    image i(4 * tile_bytes);
    for (int b = 0; b < i.size(); ++b) i.data()[b] = code(1);
    return i;
  }();
  return ones;
}

inline ptx::matrix first_tile() { return ptx::matrix::at(ptx::shared_memory(), 64); }
inline ptx::matrix second_tile() { return ptx::matrix::at(ptx::shared_memory() + tile_bytes, 64); }
inline void fill_tiles() { load_all(tile().data(), 2 * tile_bytes, barrier_at(barriers)); }
inline void end_products() {
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
}

}  // namespace sim_test::faulty
