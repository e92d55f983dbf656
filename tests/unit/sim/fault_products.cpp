// SPDX-License-Identifier: Apache-2.0
// Detectors of faults around matrix products see those that are planted.
#include <doctest/doctest.h>

#include <cstdint>

#include "unit/sim/faults.hpp"

namespace {

using namespace sim_test;
using namespace sim_test::faulty;

}  // namespace

TEST_CASE("sim: products that are not waited for, and lanes that do not agree") {
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              ptx::wgmma_commit();
            }),
            "with 1 products of its warpgroup that it has not waited for"));
  CHECK(has(fault_of([] {  // not committed, so that the wait covers nothing
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              ptx::wgmma_wait<0>();
            }),
            "with 1 products"));
  CHECK(has(fault_of([] {
              fill_tiles();
              if (ptx::thread_index() >= 96) return;
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              end_products();
            }),
            "has been issued by 96 of 128 threads"));
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, ptx::thread_index() == 9 ? second_tile() : first_tile(), second_tile(), false);
              end_products();
            }),
            "with other operands, accumulators or in another group than lane "));
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), ptx::thread_index() == 9);
              end_products();
            }),
            "with other operands"));
}

TEST_CASE("sim: descriptors") {
  const auto multiply = [](auto a) {
    return [=] {
      fill_tiles();
      float d[32];
      ptx::wgmma_fence();
      ptx::wgmma(d, a(), second_tile(), false);
      end_products();
    };
  };
  CHECK(has(fault_of(multiply([] { return ptx::matrix::at(ptx::shared_memory() + barriers, 64); })),
            "multiplies A from outside of shared memory"));
  CHECK(has(fault_of(multiply([] { return ptx::matrix::at(ptx::shared_memory() + 3 * tile_bytes, 128); })),
            "chunk 1 at offset 8192 of 8256 bytes"));
  CHECK(has(fault_of(multiply([] { return ptx::matrix{0}; })), "multiplies A from outside of shared memory"));
  CHECK(has(fault_of(multiply([] {
              ptx::matrix m = first_tile();
              m.high |= 1u << 30;
              return m;
            })),
            "swizzle"));
  CHECK(has(fault_of(multiply([] { return first_tile().along_k(300); })), "field out of its range"));
  CHECK(has(fault_of(multiply([] { return ptx::matrix::at(ptx::shared_memory() + shared_bytes + 16, 64); })),
            "an address is outside of the block's"));
}

TEST_CASE("sim: registers of products in flight") {
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              ptx::wgmma_commit();
              d[3] = 0;
              ptx::wgmma_wait<0>();
            }),
            "wrote accumulator 3 while a product was in flight"));
  const auto change = [] {
    fill_tiles();
    float d[32];
    std::uint32_t a[4] = {};
    ptx::wgmma_fence();
    ptx::wgmma(d, a, second_tile(), false);
    ptx::wgmma_commit();
    a[2] = 1;
    ptx::wgmma_wait<0>();
  };
  CHECK(has(fault_of(change), "changed them before waiting for it"));
  CHECK(fault_of(change, {.check_operand_registers = false}) == "");
  const auto no_fence = [] {
    fill_tiles();
    float d[32] = {};
    ptx::wgmma(d, first_tile(), second_tile(), true);
    end_products();
  };
  CHECK(has(fault_of(no_fence), "without a wgmma_fence"));
  CHECK(fault_of(no_fence, {.check_fences = false}) == "");
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32] = {};
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), true);
              end_products();
              d[0] = 1;
              ptx::wgmma(d, first_tile(), second_tile(), true);
              end_products();
            }),
            "without a wgmma_fence"));
}

TEST_CASE("sim: shared memory that threads write for the tensor cores") {
  const auto store = [](bool fence, int offset) {
    return [=] {
      fill_tiles();
      const int t = ptx::thread_index();
      ptx::store_transposed(ptx::shared_memory() + offset + t * 16, 0, 0, 0, 0);
      if (fence) ptx::fence_async();
      ptx::sync_block();
      float d[32];
      ptx::wgmma_fence();
      ptx::wgmma(d, first_tile(), second_tile(), false);
      end_products();
    };
  };
  CHECK(fault_of(store(true, 0)) == "");
  CHECK(fault_of(store(false, 2 * tile_bytes)) == "");
  CHECK(has(fault_of(store(false, 0)), "without a fence_async since"));
  CHECK(has(fault_of(store(true, 8)), "not 16-byte aligned"));
  CHECK(has(fault_of(store(true, 4 * tile_bytes)), "outside of the block's"));
  CHECK(has(fault_of([] {
              fill_tiles();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              ptx::wgmma_commit();
              ptx::store_transposed(ptx::shared_memory() + ptx::thread_index() * 16, 0, 0, 0, 0);
              ptx::wgmma_wait<0>();
            }),
            "may still read"));
  const auto write = [](bool fence, bool after) {
    return [=] {
      fill_tiles();
      float d[32];
      for (int i = 0; i < 2; ++i) {
        if (i == (after ? 1 : 0)) ptx::shared_memory()[ptx::thread_index() * 16] = static_cast<char>(code(2));
        if (fence) ptx::fence_async();
        ptx::sync_block();
        ptx::wgmma_fence();
        ptx::wgmma(d, first_tile(), second_tile(), false);
        end_products();
        ptx::sync_block();
      }
    };
  };
  CHECK(fault_of(write(true, false)) == "");
  CHECK(fault_of(write(true, true)) == "");
  CHECK(has(fault_of(write(false, false)), "no thread has come to a fence_async since"));
  CHECK(has(fault_of(write(false, true)), "no thread has come to a fence_async since"));
  CHECK(has(fault_of([] {  // nothing but plain writes
              for (int i = 0; i < 2 * tile_bytes / 128; ++i) ptx::shared_memory()[128 * i + ptx::thread_index()] = 0x38;
              ptx::sync_block();
              float d[32];
              ptx::wgmma_fence();
              ptx::wgmma(d, first_tile(), second_tile(), false);
              end_products();
            }),
            "no thread has come to a fence_async since"));
  CHECK(has(fault_of<32>([] { ptx::shared_memory()[shared_bytes + 5] = 1; }), "wrote behind the end"));
}

TEST_CASE("sim: a product's copies are waited for, and its stages not loaded again, whatever ends first") {
  const auto pipeline = [](bool last_lane_waits, bool tells) {
    return [=] {
      ptx::shared_barrier &full = barrier_at(barriers), &empty = barrier_at(barriers + 8);
      const int t = ptx::thread_index();
      if (t == 0) {
        full.init(1);
        empty.init(1);
        ptx::fence_barriers();
      }
      ptx::sync_block();
      if (t >= 128) {
        if (t != 128) return;
        for (int round = 0; round < 2; ++round) {
          if (round == 1 && tells) empty.wait(0);
          if (round == 1 && !tells) full.wait(0);  // which says nothing of the product
          full.arrive_expecting(2 * tile_bytes);
          ptx::bulk_load(ptx::shared_memory(), tile().data(), 2 * tile_bytes, full);
        }
        full.wait(1);
        return;
      }
      float d[32];
      if (last_lane_waits || t < 127) full.wait(0);
      ptx::wgmma_fence();
      ptx::wgmma(d, first_tile(), second_tile(), false);
      end_products();
      if (t == 0) empty.arrive();
    };
  };
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CHECK(fault_of<160>(pipeline(true, true), {.seed = seed}) == "");
    CHECK(fault_of<160>(pipeline(false, true), {.seed = seed}) != "");
    CHECK(fault_of<160>(pipeline(true, false), {.seed = seed}) != "");
  }
}
