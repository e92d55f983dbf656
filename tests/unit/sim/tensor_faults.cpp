// SPDX-License-Identifier: Apache-2.0
// Detectors of faults of tcgen05 see those that are planted, and nothing in the same kernel without. Every fault is
// looked for with several seeds: it must be found whatever the order of things.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_test;

constexpr int threads = 128, frame_at = 40 * 1024, shared_bytes = 48 * 1024, tile = 128 * 32, scales_at = 4 * tile;
constexpr tensor_frame frame{frame_at};

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

const image& ones() {
  static const image filled = [] {
    image i(scales_at + 1024);
    for (int b = 0; b < i.size(); ++b) i.data()[b] = b < scales_at ? code(1) : std::uint8_t{127};
    return i;
  }();
  return filled;
}

char* shared() { return ptx::shared_memory(); }
int self() { return ptx::thread_index(); }
int warp() { return self() / 32; }
ptx::shared_operand operand(int i) { return ptx::shared_operand::k_major(shared() + i * tile, ptx::swizzle::bytes_32); }
constexpr ptx::mma_instruction plain = ptx::mma_instruction::plain<e4m3, e4m3>(128);
constexpr ptx::mma_instruction scaled = ptx::mma_instruction::scaled<e4m3, e4m3>(128);

/// D at column 0 = operand 0 times operand 1, by thread 0; its end arrives at barrier 0.
void multiply(bool accumulate = false) {
  if (self() != 0) return;
  ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, accumulate);
  ptx::tcgen05_commit(frame.barrier(0));
}
void begin() {
  frame.begin();
  frame.fill(ones().data(), ones().size());
  ptx::sync_block();
}
/// All read 8 columns of D.
void read_d() {
  float d[8];
  ptx::tcgen05_load(d, frame.address().of_warp(warp()));
  ptx::tcgen05_wait_loads(d);
  if (d[0] != 32.0f) throw std::runtime_error("read something else");
}
void wait(int parity = 0) {
  frame.barrier(0).wait(parity);
  ptx::tcgen05_fence_after();
}

}  // namespace

TEST_CASE("sim: tcgen05: the kernel of these tests has no fault of its own") {
  CHECK(fault_of([] {
          begin();
          multiply();
          wait();
          read_d();
          frame.end();
        }) == "");
}

TEST_CASE("sim: tcgen05: allocation") {
  const auto with = [](auto f) {
    return [=] {
      begin();
      f();
      frame.end();
    };
  };
  CHECK(fault_of(with([] {})) == "");
  CHECK(has(fault_of([] { begin(); }), "ended with 512 columns of tensor memory that it has not freed (tensor.hpp:"));
  CHECK(has(fault_of(with([] {
              if (warp() == 1) ptx::tcgen05_alloc(reinterpret_cast<ptx::tensor_address*>(shared()), 32);
            })),
            "allocates 32 columns, for which it would wait for ever; 512 are held by tensor.hpp:"));
  CHECK(has(fault_of([] {
              if (warp() == 0) ptx::tcgen05_alloc(reinterpret_cast<ptx::tensor_address*>(shared()), 96);
            }),
            "allocates 96 columns: not 32, 64, 128, 256 or 512"));
  CHECK(has(fault_of(with([] {
              if (warp() == 0) ptx::tcgen05_dealloc(frame.address(), 256);
            })),
            "frees 256 columns from lane 0, column 0 on, which no tcgen05_alloc gave so"));
  CHECK(has(fault_of(with([] {
              ptx::sync_block();
              if (warp() == 3) ptx::tcgen05_dealloc(frame.address(), 512);
            })),
            "which no tcgen05_alloc gave so"));  // freed twice
  const auto twice = [](bool relinquish) {
    return [=] {
      auto* first = reinterpret_cast<ptx::tensor_address*>(shared());
      if (warp() != 0) return;
      ptx::tcgen05_alloc(first, 32);
      if (relinquish) ptx::tcgen05_relinquish();
      ptx::tcgen05_alloc(first + 1, 32);
      ptx::sync_warp();
      if (first[0].bits == first[1].bits) throw std::runtime_error("gave the same columns twice");
      ptx::tcgen05_dealloc(first[0], 32);
      ptx::tcgen05_dealloc(first[1], 32);
    };
  };
  CHECK(fault_of(twice(false)) == "");
  CHECK(has(fault_of(twice(true)), "allocates tensor memory after tcgen05_relinquish (tensor_faults.cpp:"));
  CHECK(has(fault_of(with([] {
              if (self() < 16) ptx::tcgen05_relinquish();
            })),
            "of its warp"));
  CHECK(has(fault_of([] {
              const tensor_frame half{frame_at, 256};
              half.begin();
              float d[8] = {};
              const int beyond = half.address().bits == 0 ? 256 : -8;  // odd seeds give the columns at the end
              ptx::tcgen05_store(half.address().column(beyond).of_warp(warp()), d);
              ptx::tcgen05_wait_stores();
              half.end();
            }),
            "to tensor memory that is not allocated: "));
}

TEST_CASE("sim: tcgen05: a product is waited for") {
  const auto read = [](bool waits, bool fences, int parity) {
    return [=] {
      begin();
      multiply();
      ptx::sync_block();
      if (waits) frame.barrier(0).wait(parity);
      if (fences) ptx::tcgen05_fence_after();
      read_d();
      frame.barrier(0).wait(0);
      frame.end();
    };
  };
  CHECK(fault_of(read(true, true, 0)) == "");
  const std::string no_wait = fault_of(read(false, true, 0));
  CHECK(has(no_wait, "reads registers from tensor memory"));
  CHECK(has(no_wait, "of which a product (tensor_faults.cpp:"));
  CHECK(has(no_wait, "that has not been waited for"));
  CHECK(has(fault_of(read(true, true, 1)), "that has not been waited for"));  // the phase before
  CHECK(has(fault_of(read(true, false, 0)), "and no tcgen05_fence_after has followed"));
  CHECK(has(fault_of([] {
              begin();
              multiply();
              frame.end();
            }),
            "frees tensor memory"));
  CHECK(has(fault_of([] {  // no commit
              begin();
              if (self() == 0) ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, false);
              frame.end();
            }),
            "frees tensor memory"));
  CHECK(has(fault_of([] {  // who has waited tells others only by a barrier
              begin();
              multiply();
              ptx::sync_block();
              if (warp() == 1) wait();
              if (warp() == 2) read_d();
              frame.barrier(0).wait(0);
              frame.end();
            }),
            "has not been waited for"));
  const auto told = [](bool before) {
    return [=] {
      begin();
      multiply();
      if (warp() == 1) frame.barrier(0).wait(0);
      if (warp() == 1 && before) ptx::tcgen05_fence_before();
      if (warp() == 1 || warp() == 2) ptx::sync_named(1, 64);
      ptx::tcgen05_fence_after();
      if (warp() == 2) read_d();
      frame.barrier(0).wait(0);
      frame.end();
    };
  };
  CHECK(fault_of(told(true)) == "");
}

TEST_CASE("sim: tcgen05: accumulators") {
  const auto twice = [](bool second_waits, bool same_shape, bool accumulate_first, int other_column) {
    return [=] {
      begin();
      multiply(accumulate_first);
      if (second_waits) wait();
      if (self() == 0) {
        ptx::tcgen05_mma(frame.address().column(other_column), operand(0), operand(1),
                         same_shape ? plain : ptx::mma_instruction::plain<e4m3, e4m3>(64), true);
        ptx::tcgen05_commit(frame.barrier(1));
      }
      frame.barrier(1).wait(1);
      frame.end();
    };
  };
  CHECK(fault_of(twice(false, true, false, 0)) == "");  // products of one shape follow each other
  CHECK(fault_of(twice(true, false, false, 0)) == "");
  CHECK(has(fault_of(twice(false, false, false, 0)), "that has not been waited for"));
  CHECK(fault_of(twice(false, false, false, 0), {.tensor_cores_in_order = true}) == "");
  CHECK(has(fault_of(twice(true, true, false, 64)), "of which nothing has written lanes 0 to 31, column 128"));
  CHECK(has(fault_of(twice(false, true, true, 0)), "reads D from tensor memory (lanes 0 to 127, columns 0 to 127)"));
  CHECK(has(fault_of([] {  // a store into accumulators in flight
              begin();
              multiply();
              float zero[8] = {};
              if (warp() == 0) ptx::tcgen05_store(frame.address(), zero);
              ptx::tcgen05_wait_stores();
              wait();
              frame.end();
            }),
            "writes registers to tensor memory"));
  CHECK(has(fault_of([] {  // the next product before the last one's results were read
              begin();
              multiply();
              wait();
              read_d();
              multiply();  // thread 0 does not know of the other warps' loads
              wait(1);
              frame.end();
            }),
            "of which a load"));
  CHECK(fault_of([] {
          begin();
          multiply();
          wait();
          read_d();
          tensor_frame::sync();
          multiply();
          wait(1);
          frame.end();
        }) == "");
}

TEST_CASE("sim: tcgen05: loads and stores") {
  const auto registers = [](bool wait_stores, bool wait_loads, bool touch, int group) {
    return [=] {
      begin();
      float d[8], x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
      const ptx::tensor_address t = frame.address().of_warp(warp() + group);
      ptx::tcgen05_store(t, x);
      if (wait_stores) ptx::tcgen05_wait_stores();
      ptx::tcgen05_load(d, t);
      if (touch) d[3] = 0;
      if (wait_loads) {
        ptx::tcgen05_wait_loads(d);
        if (d[7] != 8.0f) throw std::runtime_error("read something else");
      } else {
        ptx::tcgen05_wait_loads(x);
      }
      frame.end();
    };
  };
  CHECK(fault_of(registers(true, true, false, 0)) == "");
  CHECK(has(fault_of(registers(false, true, false, 0)), "of which a store (tensor_faults.cpp:"));
  CHECK(has(fault_of(registers(true, false, false, 0)), "does not name the array of one (tensor_faults.cpp:"));
  CHECK(has(fault_of(registers(true, true, true, 0)), "wrote register 3 of a load in flight"));
  CHECK(has(fault_of(registers(true, true, false, 1)), " of a block reaches lanes "));
  CHECK(has(fault_of([] {
              begin();
              read_d();
              frame.end();
            }),
            ", columns 0 to 7) of which nothing has written lanes "));
  CHECK(has(fault_of([] {  // a load in flight when its columns are written
              begin();
              float d[8] = {};
              const ptx::tensor_address t = frame.address().of_warp(warp());
              ptx::tcgen05_store(t, d);
              ptx::tcgen05_wait_stores();
              ptx::tcgen05_load(d, t);
              float e[8] = {};
              ptx::tcgen05_store(t, e);
              ptx::tcgen05_wait_stores();
              ptx::tcgen05_wait_loads(d);
              frame.end();
            }),
            "of which a load"));
  CHECK(has(fault_of([] {
              begin();
              float d[8] = {};
              ptx::tcgen05_store(frame.address().of_warp(warp()).column(self() % 2), d);
              frame.end();
            }),
            " come to tcgen05_store with different operands: lane 0 with lane "));
  CHECK(has(fault_of([] {
              begin();
              float d[32] = {};
              ptx::tcgen05_store(frame.address().of_warp(warp()).column(500), d);
              frame.end();
            }),
            "beyond its end: columns 500 to 531 of 512"));
}

TEST_CASE("sim: tcgen05: P from registers as A") {
  const auto feed = [](bool waits, bool before, bool barrier, bool after) {
    return [=] {
      begin();
      std::uint32_t p[8];
      for (std::uint32_t& x : p) x = 0x38383838;  // ones
      ptx::tcgen05_store(frame.address().column(128).of_warp(warp()), p);
      if (waits) ptx::tcgen05_wait_stores();
      if (before) ptx::tcgen05_fence_before();
      if (barrier) ptx::sync_block();
      if (after) ptx::tcgen05_fence_after();
      if (self() == 0) {
        ptx::tcgen05_mma(frame.address(), frame.address().column(128), operand(1), plain, false);
        ptx::tcgen05_commit(frame.barrier(0));
      }
      wait();
      read_d();
      ptx::tcgen05_wait_stores();
      frame.end();
    };
  };
  CHECK(fault_of(feed(true, true, true, true)) == "");
  CHECK(has(fault_of(feed(false, true, true, true)), "of which a store"));
  CHECK(has(fault_of(feed(true, false, true, true)), "nor do a tcgen05_fence_before and a barrier lead here"));
  CHECK(has(fault_of(feed(true, true, false, true)), "nor do a tcgen05_fence_before and a barrier lead here"));
  CHECK(has(fault_of(feed(true, true, true, false)), "and no tcgen05_fence_after has followed"));
}

TEST_CASE("sim: tcgen05: operands in shared memory") {
  // A product; then thread 0, or another, does something to its operands.
  const auto then = [](bool waits, auto f) {
    return [=] {
      begin();
      multiply();
      ptx::sync_block();
      if (waits) wait();
      f();
      wait();
      frame.end();
    };
  };
  const auto load_again = [] {
    if (self() != 0) return;
    frame.barrier(1).arrive_expecting(tile);
    ptx::bulk_load(shared() + tile, ones().data(), tile, frame.barrier(1));
    frame.barrier(1).wait(1);
  };
  CHECK(fault_of(then(true, load_again)) == "");
  CHECK(has(fault_of(then(false, load_again)), "which a product or a copy may still read (tensor_faults.cpp:"));
  const auto store = [] {
    if (warp() == 1) ptx::store_transposed(shared() + tile + self() * 16, 0, 0, 0, 0);
  };
  CHECK(fault_of(then(true, store)) == "");
  CHECK(has(fault_of(then(false, store)), "which a product or a copy may still read"));

  // A copy that the thread of the product has not waited for.
  const auto load = [](bool waits) {
    return [=] {
      begin();
      if (self() == 0) {
        frame.barrier(1).arrive_expecting(tile);
        ptx::bulk_load(shared() + tile, ones().data(), tile, frame.barrier(1));
        if (waits) frame.barrier(1).wait(1);
      }
      multiply();
      wait();
      frame.barrier(1).wait(1);
      frame.end();
    };
  };
  CHECK(fault_of(load(true)) == "");
  CHECK(has(fault_of(load(false)), "reads B at offset 4096, which a copy fills (tensor_faults.cpp:"));

  // Writes of threads need a fence, and none may come while the product runs.
  const auto write = [](bool fence, bool late) {
    return [=] {
      begin();
      const auto put = [] { shared()[tile + self() * 16] = static_cast<char>(code(2)); };
      if (!late) put();
      if (fence) ptx::fence_async();
      ptx::sync_block();
      multiply();
      if (late && self() == 0) put();
      wait();
      frame.end();
    };
  };
  CHECK(fault_of(write(true, false)) == "");
  CHECK(has(fault_of(write(false, false)), "no thread has come to a fence_async since"));
  CHECK(has(sim_test::fault_of<threads, shared_bytes>(write(true, true)),
            "reads B at offset 4096, which was written after the issue and before the end"));
}

TEST_CASE("sim: tcgen05: scales") {
  const auto tile_at = [](int i) { return ptx::shared_operand::scale_tile(shared() + scales_at + 512 * i); };
  const auto multiply_scaled = [=](bool copies_b, int again) {
    return [=] {
      begin();
      const ptx::tensor_address t = frame.address();
      if (self() == 0) {
        ptx::tcgen05_copy_scales(t.column(128), tile_at(0));
        if (copies_b) ptx::tcgen05_copy_scales(t.column(132), tile_at(1));
        ptx::tcgen05_mma_scaled(t, operand(0), operand(1), scaled, t.column(128), t.column(132), false);
        if (again == 1) ptx::tcgen05_copy_scales(t.column(128), tile_at(0));
        ptx::tcgen05_commit(frame.barrier(0));
        if (again == 2) {
          wait();
          ptx::tcgen05_copy_scales(t.column(128), tile_at(0));
          ptx::tcgen05_commit(frame.barrier(1));
        }
      }
      wait();
      read_d();
      if (again == 2) frame.barrier(1).wait(1);
      frame.end();
    };
  };
  CHECK(fault_of(multiply_scaled(true, 0)) == "");
  CHECK(has(fault_of(multiply_scaled(false, 0)), "reads scales of B from tensor memory"));
  CHECK(has(fault_of(multiply_scaled(true, 1)), "writes scales to tensor memory"));
  CHECK(fault_of(multiply_scaled(true, 1), {.tensor_cores_in_order = true}) == "");
  CHECK(fault_of(multiply_scaled(true, 2)) == "");

  const auto stored = [=](int differing_group) {
    return [=] {
      begin();
      std::uint32_t x[8];
      for (std::uint32_t& w : x) w = 0x7f7f7f7f;
      if (warp() == differing_group && self() % 32 == 5) x[2] = 0x7f7f7f80;
      ptx::tcgen05_store(frame.address().column(128).of_warp(warp()), x);
      ptx::tcgen05_wait_stores();
      tensor_frame::sync();
      if (self() == 0) {
        const ptx::tensor_address t = frame.address();
        ptx::tcgen05_mma_scaled(t, operand(0), operand(1), scaled, t.column(128), t.column(132), false);
        ptx::tcgen05_commit(frame.barrier(0));
      }
      wait();
      read_d();
      frame.end();
    };
  };
  CHECK(fault_of(stored(4)) == "");
  CHECK(has(fault_of(stored(3)), "finds different scales of A for row 69 in lanes 0 to 31 and 96 to 127"));
  CHECK(has(fault_of([=] {
              begin();
              if (self() == 0) ptx::tcgen05_copy_scales(frame.address().lane(32).column(128), tile_at(0));
              frame.end();
            }),
            "gives the destination of a copy of scales in lane 32: it begins in lane 0"));
}

TEST_CASE("sim: tcgen05: descriptors") {
  const auto with = [](auto a, ptx::mma_instruction how) {
    return [=] {
      begin();
      if (self() == 0) {
        ptx::tcgen05_mma(frame.address(), a(), operand(1), how, false);
        ptx::tcgen05_commit(frame.barrier(0));
      }
      wait();
      frame.end();
    };
  };
  const auto changed = [](std::uint64_t set, std::uint64_t clear) {
    return [=] { return ptx::shared_operand{(operand(0).bits & ~clear) | set}; };
  };
  CHECK(fault_of(with(changed(0, 0), plain)) == "");
  CHECK(has(fault_of(with(changed(0, 1ull << 46), plain)), "whose bits 46 to 48 are not 1"));  // wgmma's descriptor
  CHECK(has(fault_of(with(changed(1ull << 49, 0), plain)), "with a base offset"));
  CHECK(has(fault_of(with(changed(1ull << 52, 0), plain)), "with an absolute leading address"));
  CHECK(has(fault_of(with(changed(1ull << 60, 0), plain)), "with a reserved bit"));
  CHECK(has(fault_of(with(changed(7ull << 61, 7ull << 61), plain)), "with swizzle 7, which is invalid"));
  CHECK(has(fault_of(with(changed(1ull << 61, 7ull << 61), plain)), "swizzled by 32-byte atoms"));
  CHECK(has(fault_of(with(changed(0, 0x3fff), plain)), "outside of shared memory"));
  CHECK(has(fault_of(with(changed(0x3fffull << 32, 0), plain)), "outside of shared memory"));
  CHECK(has(fault_of(with([] { return operand(0).advanced(16); }, plain)), "past the end of a row of 32 bytes"));
  CHECK(has(fault_of(with([] { return operand(0).advanced(64); }, plain)), "in the middle of a swizzle pattern"));

  const auto instruction = [](std::uint32_t set, std::uint32_t clear) {
    return ptx::mma_instruction{(plain.bits & ~clear) | set};
  };
  CHECK(has(fault_of(with(changed(0, 0), instruction(0, 3u << 4))), "whose sums are not FP32"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(5u << 7, 0))), "of element types other than E4M3 and E5M2"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(1u << 14, 0))), "that negates an operand"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(1u << 2, 0))), "of a sparse product"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(0, 63u << 17))), "whose N is not a multiple of 16"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(4u << 24, 31u << 24))), "of other than 128 rows"));
  CHECK(has(fault_of(with(changed(0, 0), scaled)), "with a reserved bit for kind::f8f6f4"));
  CHECK(has(fault_of([] {
              begin();
              const ptx::tensor_address t = frame.address();
              if (self() == 0) ptx::tcgen05_mma_scaled(t, operand(0), operand(1), plain, t, t, false);
              frame.end();
            }),
            "whose scales are not E8M0 for kind::mxf8f6f4"));
  CHECK(has(fault_of([] {
              begin();
              const ptx::tensor_address t = frame.address();
              if (self() == 0) ptx::tcgen05_mma(t.lane(32), operand(0), operand(1), plain, false);
              frame.end();
            }),
            "gives D in lane 32"));
}

TEST_CASE("sim: tcgen05: commits") {
  CHECK(has(fault_of([] {
              frame.begin();
              if (self() == 0) ptx::tcgen05_commit(barrier_at(0));
              frame.end();
            }),
            "which is not initialised"));
  CHECK(has(fault_of([] {
              frame.begin();
              if (self() == 0) {
                barrier_at(0).init(1);
                ptx::tcgen05_commit(barrier_at(0));
              }
              frame.end();
            }),
            "whose init no fence_barriers has followed"));
  CHECK(has(fault_of([] {  // the barrier counts two arrivals and gets one
              frame.begin();
              if (self() == 0) {
                barrier_at(0).init(2);
                ptx::fence_barriers();
                ptx::tcgen05_commit(barrier_at(0));
                barrier_at(0).wait(0);
              }
              frame.end();
            }),
            "wait for the phase of parity 0 of the barrier at offset 0: 1 of 2 arrivals have come"));
  CHECK(has(fault_of([] {
              frame.begin();
              frame.end();
              if (self() == 0) ptx::tcgen05_commit(frame.barrier(0));
            }),
            "ended with products, copies or commits of thread 0 that nothing has waited for (tensor_faults.cpp:"));
}
