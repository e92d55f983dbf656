// SPDX-License-Identifier: Apache-2.0
// Blocks that wait for each other through global memory, and the other things that kernels do there.
#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "unit/sim/support.hpp"

namespace {

using namespace sim_test;

}  // namespace

TEST_CASE("sim: blocks run in order, one after another, with their own shared memory") {
  std::vector<std::int64_t> order;
  const sim::report done = launch<32, 4>(
      [&] {
        char* shared = ptx::shared_memory();
        if (ptx::thread_index() == 0) {
          CHECK(static_cast<std::uint8_t>(shared[0]) == 0xff);
          shared[0] = 1;
          order.push_back(ptx::block_index());
        }
      },
      {}, 5);
  CHECK(order == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(done.blocks == 5);
  CHECK(done.most_resident == 1);
}

TEST_CASE("sim: a block that waits for a later one makes it start") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::int32_t turn = 0;
    std::vector<std::int64_t> order;
    const sim::report done = launch<64, 4>(
        [&] {
          const auto number = static_cast<std::int32_t>(7 - ptx::block_index());  // the last block is the first
          if (ptx::thread_index() == 0) {
            ptx::wait_turn(&turn, number);
            order.push_back(ptx::block_index());
            ptx::pass_turn(&turn, number + 1);
          }
          ptx::sync_block();
        },
        {.seed = seed}, 8);
    CHECK(order == std::vector<std::int64_t>{7, 6, 5, 4, 3, 2, 1, 0});
    CHECK(done.most_resident == 8);
    CHECK(done.turns == 7);
  }
}

TEST_CASE("sim: resident blocks are mixed, turns keep their sums in order") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    std::int32_t turn = 0;
    alignas(16) float sum[4] = {1, 1, 1, 1};
    const sim::report done = launch<32, 4>(
        [&] {
          const auto i = static_cast<std::int32_t>(ptx::block_index());
          const bool first = ptx::thread_index() == 0;
          if (first) {
            ptx::wait_turn(&turn, i);
            for (float& x : sum) x = x * 0.5f + static_cast<float>(i);
            ptx::reduce_add(sum, 0, 1, 2, 3);
            ptx::pass_turn(&turn, i + 1);
          }
        },
        {.seed = seed, .resident = 4}, 10);
    float expected[4] = {1, 1, 1, 1};
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 4; ++j) expected[j] = expected[j] * 0.5f + static_cast<float>(i) + static_cast<float>(j);
    for (int j = 0; j < 4; ++j) CHECK(sum[j] == expected[j]);
    CHECK(done.most_resident == 4);
  }
}

TEST_CASE("sim: more blocks than a device holds that wait for a later one are a deadlock") {
  std::int32_t turn = 0;
  const auto kernel = [&] {
    if (ptx::thread_index() == 0 && ptx::block_index() < 3) ptx::wait_turn(&turn, 1);
    if (ptx::block_index() == 3) ptx::pass_turn(&turn, 1);
  };
  CHECK(fault_of<32, 4>(kernel, {.resident_limit = 4}, 4) == "");
  turn = 0;
  CHECK(has(fault_of<32, 4>(kernel, {.resident_limit = 3}, 4), "wait for turn 1, which stands at 0"));
}

TEST_CASE("sim: atomics") {
  std::uint32_t bits = 0;
  std::int32_t count = 0;
  std::vector<int> tickets(128, 0);
  launch<64, 4>(
      [&] {
        ptx::atomic_or(&bits, 1u << ptx::thread_index() % 32);
        ++tickets[static_cast<std::size_t>(ptx::atomic_add(&count, 1))];
      },
      {.seed = 3, .resident = 2}, 2);
  CHECK(bits == 0xffffffffu);
  CHECK(tickets == std::vector<int>(128, 1));
}
