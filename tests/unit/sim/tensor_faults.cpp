// SPDX-License-Identifier: Apache-2.0
// Detectors of faults around tensor memory see those that are planted: allocation, loads, stores, P as an operand.
#include "unit/sim/tensor_faults.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

using namespace sim_test;
using namespace sim_test::tensor_faulty;

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
  CHECK(has(fault_of([] { begin(); }),
            "block 0 ended with 512 columns of tensor memory that its warp 0 took and has not freed (tensor.hpp:"));
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
