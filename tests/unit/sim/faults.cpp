// SPDX-License-Identifier: Apache-2.0
// Detectors of faults of waiting, copying and registers see those that are planted.
#include "unit/sim/faults.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace {

using namespace sim_test;
using namespace sim_test::faulty;

}  // namespace

TEST_CASE("sim: the kernel of these tests has no fault of its own") {
  CHECK(fault_of([] {
          fill_tiles();
          float d[32];
          ptx::wgmma_fence();
          ptx::wgmma(d, first_tile(), second_tile(), false);
          end_products();
        }) == "");
}

TEST_CASE("sim: a deadlock says who waits for what") {
  const std::string phase = fault_of<64>([] {
    if (ptx::thread_index() == 0) barrier_at(barriers).init(3);
    ptx::sync_block();
    if (ptx::thread_index() == 5) barrier_at(barriers).arrive_expecting(32);
    if (ptx::thread_index() >= 32) barrier_at(barriers).wait(0);
  });
  CHECK(has(phase, "deadlock"));
  CHECK(has(phase,
            "block 0, threads 32 to 63: wait for the phase of parity 0 of the barrier at offset 8192: 1 of 3 "
            "arrivals have come, 32 bytes are outstanding (faults.cpp:"));
  CHECK(has(phase, "threads 0 to 31: have returned"));

  CHECK(has(fault_of<64>([] {
              if (ptx::thread_index() < 32) ptx::sync_named(3, 64);
            }),
            "threads 0 to 31: wait at barrier 3: 32 of 64 threads have come"));
  std::int32_t turn = 4;
  CHECK(has(fault_of<32>([&] { ptx::wait_turn(&turn, 5); }), "wait for turn 5, which stands at 4"));
}

TEST_CASE("sim: collectives are reached by all lanes of a warp, and by all at the same one") {
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() != 7) ptx::sync_warp();
            }),
            "of its warp"));
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() < 16)
                ptx::sync_warp();
              else
                ptx::max_over_warp(1);
            }),
            "while lane 0 of its warp is at sync_warp"));
  CHECK(has(fault_of<32>([] { ptx::sync_named(1 + ptx::thread_index() % 2, 32); }), "while lane 0 of its warp is at"));
  CHECK(has(fault_of<64>([] {
              if (ptx::thread_index() < 32) ptx::sync_block();
            }),
            "sync_block"));
}

TEST_CASE("sim: named barriers") {
  CHECK(has(fault_of<64>([] { ptx::sync_named(1, ptx::thread_index() < 32 ? 64 : 96); }), "barrier 1 of 96 threads"));
  CHECK(has(fault_of<96>([] { ptx::sync_named(1, 64); }), "wait at barrier 1: 32 of 64"));
  CHECK(has(fault_of<32>([] { ptx::sync_named(0, 32); }), "not 1 to 15"));
  CHECK(has(fault_of<32>([] { ptx::sync_named(16, 32); }), "not 1 to 15"));
  CHECK(has(fault_of<32>([] { ptx::arrive_named(1, 48); }), "not whole warps"));
}

TEST_CASE("sim: barriers in shared memory") {
  const auto all = [](auto f) {
    return [=] {
      ptx::shared_barrier& b = barrier_at(barriers);
      if (ptx::thread_index() == 0) b.init(2);
      ptx::sync_block();
      f(b);
    };
  };
  CHECK(has(fault_of<32>([] { barrier_at(barriers).wait(0); }), "not initialised"));
  CHECK(has(fault_of<32>([] { sim::init_barrier(ptx::shared_memory() + barriers + 4, 1, sim::site::current()); }),
            "not a multiple of 8"));
  CHECK(has(fault_of<32>([] { barrier_at(shared_bytes).init(1); }), "outside of the block's"));
  CHECK(has(fault_of<32>(all([](auto& b) { b.init(2); })), "for a second time"));
  CHECK(has(fault_of<32>(all([](auto& b) {
              if (ptx::thread_index() == 0) b.arrive_expecting(16);
              ptx::sync_warp();
              if (ptx::thread_index() < 2) b.arrive();
            })),
            "when all 2 arrivals of the phase have come and 16 bytes are outstanding"));
  CHECK(has(fault_of<64>(all([](auto& b) {
              if (ptx::thread_index() >= 32) b.wait(0);
              if (ptx::thread_index() != 0) return;
              ptx::shared_barrier& other = barrier_at(barriers + 8);
              other.init(1);
              other.wait(1);
              for (int i = 0; i < 4; ++i) b.arrive();
            })),
            "threads that wait for the last one have seen its end"));
  CHECK(has(fault_of<32>(all([](auto& b) {
              b.word = ~0ull;
              b.arrive();
            })),
            "overwritten"));
  CHECK(has(fault_of<32>(all([](auto& b) { b.wait(2); })), "parity 2"));
  CHECK(has(fault_of<32>(all([](auto& b) { b.arrive_expecting(1 << 20); })), "more than it can count"));
}

TEST_CASE("sim: bulk copies") {
  const auto copy = [](int to, int from, int bytes) {
    return [=] {
      if (ptx::thread_index() != 0) return;
      ptx::shared_barrier& b = barrier_at(barriers);
      b.init(1);
      ptx::fence_barriers();
      b.arrive_expecting(bytes);
      ptx::bulk_load(ptx::shared_memory() + to, tile().data() + from, bytes, b);
      b.wait(0);
    };
  };
  CHECK(fault_of<32>(copy(0, 0, 64)) == "");
  CHECK(has(fault_of<32>(copy(8, 0, 64)), "copies to offset 8: not 16-byte aligned"));
  CHECK(has(fault_of<32>(copy(0, 4, 64)), "copies from where is not 16-byte aligned"));
  CHECK(has(fault_of<32>(copy(0, 0, 24)), "copies 24 bytes: not a multiple of 16"));
  CHECK(has(fault_of<32>(copy(0, 0, 0)), "copies 0 bytes"));
  CHECK(has(fault_of<32>(copy(barriers + 48, 0, 64)), "outside of the block's"));
  CHECK(has(fault_of<32>(copy(barriers - 16, 0, 64)), "copies over the barrier"));
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() != 0) return;
              barrier_at(barriers).init(1);
              ptx::fence_barriers();
              ptx::bulk_load(ptx::shared_memory(), tile().data(), 64, barrier_at(barriers));
            }),
            "ended while a copy to offset 0 was under way"));
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() != 0) return;
              barrier_at(barriers).init(1);
              ptx::fence_barriers();
              ptx::bulk_load(ptx::shared_memory(), tile().data(), 64, barrier_at(barriers));
              ptx::bulk_load(ptx::shared_memory() + 48, tile().data(), 64, barrier_at(barriers));
            }),
            "while another copy to there is under way"));
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() != 0) return;
              barrier_at(barriers).init(1);
              ptx::fence_barriers();
              ptx::bulk_load(ptx::shared_memory(), ptx::shared_memory() + 64, 64, barrier_at(barriers));
            }),
            "copies from shared memory"));
  CHECK(has(fault_of<32>([] {
              if (ptx::thread_index() != 0) return;
              barrier_at(barriers).init(1);
              ptx::bulk_load(ptx::shared_memory(), tile().data(), 64, barrier_at(barriers));
            }),
            "whose init no fence_barriers has followed"));
  CHECK(has(fault_of([] {  // a stage that is loaded again before the product that reads it was waited for
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              ptx::wgmma_commit();
              if (ptx::thread_index() == 0)
                ptx::bulk_load(ptx::shared_memory(), tile().data(), tile_bytes, barrier_at(barriers));
              ptx::wgmma_wait<0>();
            }),
            "which a product that nothing has waited for may still read"));
}

TEST_CASE("sim: registers per thread") {
  CHECK(has(fault_of<384>([] { ptx::raise_registers<236>(); }), "not a multiple of 8"));
  CHECK(has(fault_of<384>([] { ptx::lower_registers<240>(); }), "lowers its registers from 168 to 240"));
  CHECK(has(fault_of<384>([] { ptx::raise_registers<24>(); }), "raises its registers from 168 to 24"));
}

TEST_CASE("sim: what a kernel throws comes out, and instructions outside of a launch are refused") {
  CHECK_THROWS_WITH_AS((launch<32, 16>([] {
                         if (ptx::thread_index() == 3) throw std::logic_error("of the kernel");
                         ptx::sync_block();
                       })),
                       "of the kernel", std::logic_error);
  CHECK_THROWS_AS(ptx::thread_index(), std::logic_error);
  float x = 0;
  CHECK_THROWS_AS(ptx::reduce_add(&x + 1, 0, 0, 0, 0), std::logic_error);
  CHECK(has(fault_of<32>([] {
              alignas(16) static float sum[8];
              ptx::reduce_add(sum + 1, 0, 0, 0, 0);
            }),
            "not 16-byte aligned"));
}
