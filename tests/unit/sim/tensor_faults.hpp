// SPDX-License-Identifier: Apache-2.0
// The kernel in which the tests of tcgen05's detectors plant their faults: one product of two tiles of ones. Every fault
// is looked for with several seeds: it must be found whatever the order of things, and nothing in the mended twin.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "unit/sim/tensor.hpp"

namespace sim_test::tensor_faulty {

inline constexpr int threads = 128, frame_at = 40 * 1024, shared_bytes = 48 * 1024, tile = 128 * 32,
                     scales_at = 4 * tile;
inline constexpr tensor_frame frame{frame_at};

/// What the kernel is stopped with under seed 0; a fault must be found under all, its absence as well.
template <class Function>
std::string fault_of(Function kernel, sim::options how = {}) {
  const std::string first = sim_test::fault_of<threads, shared_bytes>(kernel, how);
  for (how.seed = 1; how.seed < 6; ++how.seed) {
    const std::string other = sim_test::fault_of<threads, shared_bytes>(kernel, how);
    if (other.empty() != first.empty()) return "seed " + std::to_string(how.seed) + " disagrees: " + other;
  }
  return first;
}

inline const image& ones() {
  static const image filled = [] {
    image i(scales_at + 1024);
    for (int b = 0; b < i.size(); ++b) i.data()[b] = b < scales_at ? code(1) : std::uint8_t{127};
    return i;
  }();
  return filled;
}

inline char* shared() { return ptx::shared_memory(); }
inline int self() { return ptx::thread_index(); }
inline int warp() { return self() / 32; }
inline ptx::shared_operand operand(int i) {
  return ptx::shared_operand::k_major(shared() + i * tile, ptx::swizzle::bytes_32);
}
inline constexpr ptx::mma_instruction plain = ptx::mma_instruction::plain<e4m3, e4m3>(128);
inline constexpr ptx::mma_instruction scaled = ptx::mma_instruction::scaled<e4m3, e4m3>(128);

/// D at column 0 = operand 0 times operand 1, by thread 0; its end arrives at barrier 0.
inline void multiply(bool accumulate = false) {
  if (self() != 0) return;
  ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, accumulate);
  ptx::tcgen05_commit(frame.barrier(0));
}
inline void begin() {
  frame.begin();
  frame.fill(ones().data(), ones().size());
  ptx::sync_block();
}
/// All read 8 columns of D.
inline void read_d() {
  float d[8];
  ptx::tcgen05_load(d, frame.address().of_warp(warp()));
  ptx::tcgen05_wait_loads(d);
  if (d[0] != 32.0f) throw std::runtime_error("read something else");
}
inline void wait(int parity = 0) {
  frame.barrier(0).wait(parity);
  ptx::tcgen05_fence_after();
}

}  // namespace sim_test::tensor_faulty
