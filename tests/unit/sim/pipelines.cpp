// SPDX-License-Identifier: Apache-2.0
// Barriers, copies and products that end later than they are issued.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "unit/sim/support.hpp"

namespace {

using namespace sim_test;

constexpr int stage_bytes = 64 * 32;

}  // namespace

TEST_CASE("sim: a producer warp and two warpgroups share a ring of stages") {
  constexpr int stages = 3, steps = 11, barriers = 2 * stages * stage_bytes;
  std::vector<image> tiles;
  std::vector<matrix> a, b;
  for (int i = 0; i < steps; ++i) {
    a.push_back(random_matrix(64, 32, static_cast<unsigned>(20 + i)));
    b.push_back(random_matrix(64, 32, static_cast<unsigned>(50 + i)));
  }
  std::vector<image> of_a, of_b;
  for (int i = 0; i < steps; ++i) {
    of_a.push_back(chunked(a[static_cast<std::size_t>(i)]));
    of_b.push_back(chunked(b[static_cast<std::size_t>(i)]));
  }
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::vector<float> d(2 * 64 * 64, 0.0f);
    const sim::report done = launch<384, barriers + 16 * stages>(
        [&] {
          char* shared = ptx::shared_memory();
          const auto full = [&](int s) -> ptx::shared_barrier& { return barrier_at(barriers + 16 * s); };
          const auto empty = [&](int s) -> ptx::shared_barrier& { return barrier_at(barriers + 16 * s + 8); };
          const int t = ptx::thread_index(), group = t / 128;
          if (t == 0) {
            for (int s = 0; s < stages; ++s) {
              full(s).init(1);
              empty(s).init(2);
            }
            ptx::fence_barriers();
          }
          ptx::sync_block();
          if (group == 2) {
            ptx::lower_registers<24>();
            if (t != 256) return;
            for (int i = 0; i < steps; ++i) {
              const int s = i % stages;
              empty(s).wait(i / stages % 2 ^ 1);
              full(s).arrive_expecting(2 * stage_bytes);
              ptx::bulk_load(shared + 2 * s * stage_bytes, of_a[static_cast<std::size_t>(i)].data(), stage_bytes,
                             full(s));
              ptx::bulk_load(shared + (2 * s + 1) * stage_bytes, of_b[static_cast<std::size_t>(i)].data(), stage_bytes,
                             full(s));
            }
            return;
          }
          ptx::raise_registers<240>();
          float acc[32];
          for (float& x : acc) x = 0;
          for (int i = 0; i < steps; ++i) {
            const int s = i % stages;
            full(s).wait(i / stages % 2);
            ptx::wgmma_fence();
            ptx::wgmma(acc, ptx::matrix::at(shared + 2 * s * stage_bytes, 64),
                       ptx::matrix::at(shared + (2 * s + 1) * stage_bytes, 64), true);
            ptx::wgmma_commit();
            ptx::wgmma_wait<0>();
            if (t % 128 == 0) empty(s).arrive();
          }
          for (int i = 0; i < 32; ++i)
            d[static_cast<std::size_t>(group * 64 * 64 + row_of(t, i) * 64 + column_of(t, i))] = acc[i];
        },
        {.seed = seed});
    CHECK(done.products == 2 * steps);
    CHECK(done.bulk_copies == 2 * steps);
    int wrong = 0;
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < 64; ++c) {
        double expected = 0;
        for (int i = 0; i < steps; ++i)
          for (int k = 0; k < 32; ++k)
            expected +=
                static_cast<double>(a[static_cast<std::size_t>(i)](r, k)) * b[static_cast<std::size_t>(i)](c, k);
        for (int group = 0; group < 2; ++group)
          wrong += std::fabs(d[static_cast<std::size_t>(group * 4096 + r * 64 + c)] - expected) > 1e-3;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("sim: named barriers let two warpgroups take turns, one waiting and one only arriving") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<int> order;
    const sim::report done = launch<256, 64>(
        [&] {
          const int t = ptx::thread_index(), group = t / 128;
          if (group == 1) ptx::arrive_named(1, 256);  // group 0 begins
          for (int i = 0; i < 5; ++i) {
            ptx::sync_named(1 + group, 256);
            if (t % 128 == 0) order.push_back(group);
            if (i < 4 || group == 0) ptx::arrive_named(2 - group, 256);
          }
        },
        {.seed = seed});
    CHECK(order == std::vector<int>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1});
    CHECK(done.named_barriers == 10);
  }
}

TEST_CASE("sim: sync_block orders a write before the reads of all others") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    int wrong = 0;
    launch<96, 96 * 4>(
        [&] {
          auto* x = reinterpret_cast<std::int32_t*>(ptx::shared_memory());
          const int t = ptx::thread_index();
          if (x[t] != -1 && x[t] != t) ++wrong;  // 0xff, as all shared memory at first
          x[t] = t;
          ptx::sync_block();
          for (int i = 0; i < 96; ++i) wrong += x[i] != i;
        },
        {.seed = seed});
    CHECK(wrong == 0);
  }
}

TEST_CASE("sim: a wait for the phase before the first returns, one for the first does not until it ended") {
  int arrived = 0, seen = 0;
  launch<32, 16>([&] {
    ptx::shared_barrier& barrier = barrier_at(8);
    const int t = ptx::thread_index();
    if (t == 0) barrier.init(31);
    ptx::sync_block();
    barrier.wait(1);
    if (t != 0) {
      ++arrived;
      barrier.arrive();
    } else {
      barrier.wait(0);
      seen = arrived;
      barrier.wait(0);  // that phase is still the last one
    }
  });
  CHECK(seen == 31);
}

TEST_CASE("sim: shared memory that a copy has not filled reads as NaN without the wait") {
  image ones(stage_bytes);
  for (int i = 0; i < stage_bytes; ++i) ones.data()[i] = code(1);
  for (const bool waits : {false, true}) {
    int nan = 0;
    launch<32, stage_bytes + 8>([&] {
      ptx::shared_barrier& barrier = barrier_at(stage_bytes);
      if (ptx::thread_index() == 0) {
        barrier.init(1);
        ptx::fence_barriers();
      }
      ptx::sync_block();
      if (ptx::thread_index() == 0) {
        barrier.arrive_expecting(stage_bytes);
        ptx::bulk_load(ptx::shared_memory(), ones.data(), stage_bytes, barrier);
      }
      ptx::sync_warp();
      if (waits) barrier.wait(0);
      float x[4];
      ptx::unpack_e4m3(reinterpret_cast<std::uint32_t*>(ptx::shared_memory())[ptx::thread_index()], x);
      nan += static_cast<int>(std::count_if(x, x + 4, [](float y) { return std::isnan(y); }));
      barrier.wait(0);
    });
    CHECK(nan == (waits ? 0 : 128));
  }
}

TEST_CASE("sim: accumulators read as NaN until their own group is waited for") {
  image ones(2 * stage_bytes);
  for (int i = 0; i < ones.size(); ++i) ones.data()[i] = code(1);
  int early_nan = 0, first = 0, second_nan = 0, second = 0;
  launch<128, 2 * stage_bytes + 8>([&] {
    char* shared = ptx::shared_memory();
    load_all(ones.data(), ones.size(), barrier_at(ones.size()));
    float a[32], b[32];
    ptx::wgmma_fence();
    ptx::wgmma(a, ptx::matrix::at(shared, 64), ptx::matrix::at(shared + stage_bytes, 64), false);
    ptx::wgmma_commit();
    ptx::wgmma(b, ptx::matrix::at(shared, 64), ptx::matrix::at(shared + stage_bytes, 64), false);
    ptx::wgmma_commit();
    early_nan += std::isnan(a[0]) && std::isnan(a[31]) && std::isnan(b[5]);
    ptx::wgmma_wait<1>();
    first += std::count(a, a + 32, 32.0f) == 32;
    second_nan += std::isnan(b[0]);
    ptx::wgmma_wait<0>();
    second += std::count(b, b + 32, 32.0f) == 32;
  });
  CHECK(early_nan == 128);
  CHECK(first == 128);
  CHECK(second_nan == 128);
  CHECK(second == 128);
}

TEST_CASE("sim: groups into the same accumulators, the first of them waited for") {
  image ones(2 * stage_bytes);
  for (int i = 0; i < ones.size(); ++i) ones.data()[i] = code(1);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    int right = 0;
    launch<128, 2 * stage_bytes + 8>(
        [&] {
          char* shared = ptx::shared_memory();
          load_all(ones.data(), ones.size(), barrier_at(ones.size()));
          float a[32];
          for (int i = 0; i < 6; ++i) {
            if (i == 0) ptx::wgmma_fence();
            if (i > 1) ptx::wgmma_wait<1>();
            ptx::wgmma_fence();
            ptx::wgmma(a, ptx::matrix::at(shared, 64), ptx::matrix::at(shared + stage_bytes, 64), i > 0);
            ptx::wgmma_commit();
          }
          ptx::wgmma_wait<0>();
          right += std::count(a, a + 32, 6 * 32.0f) == 32;
        },
        {.seed = seed});
    CHECK(right == 128);
  }
}
