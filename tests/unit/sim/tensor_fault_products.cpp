// SPDX-License-Identifier: Apache-2.0
// Detectors of faults around tcgen05 products see those that are planted: waits, accumulators, operands, scales, commits.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "unit/sim/tensor_faults.hpp"

namespace {

using namespace sim_test;
using namespace sim_test::tensor_faulty;

}  // namespace

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
  CHECK(has(no_wait, "of which a product (tensor_faults.hpp:"));
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
  CHECK(has(fault_of(then(false, load_again)), "which a product or a copy may still read (tensor_faults.hpp:"));
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
  CHECK(has(fault_of(load(false)), "reads B at offset 4096, which a copy fills (tensor_fault_products.cpp:"));

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
  CHECK(has(
      fault_of([] {
        frame.begin();
        frame.end();
        if (self() == 0) ptx::tcgen05_commit(frame.barrier(0));
      }),
      "ended with products, copies or commits of thread 0 that nothing has waited for (tensor_fault_products.cpp:"));
}
