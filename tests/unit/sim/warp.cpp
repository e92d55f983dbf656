// SPDX-License-Identifier: Apache-2.0
// Instructions of a warp and of a thread.
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "unit/sim/support.hpp"

namespace {

using namespace sim_test;

}  // namespace

TEST_CASE("sim: shuffles, votes and the largest of a warp") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    int wrong = 0;
    const sim::report done = launch<64, 4>(
        [&] {
          const int t = ptx::thread_index();
          for (int lanes = 1; lanes < 32; lanes *= 2) {
            wrong += ptx::shuffle_xor(static_cast<std::uint32_t>(t), lanes) != static_cast<std::uint32_t>(t ^ lanes);
            wrong += ptx::shuffle_xor(0.5f * static_cast<float>(t), lanes) != 0.5f * static_cast<float>(t ^ lanes);
          }
          wrong += ptx::max_over_warp(static_cast<std::uint32_t>(t * 7 % 32)) != 31;
          wrong += ptx::any_in_warp(t == 40) != (t >= 32);
          ptx::sync_warp();
        },
        {.seed = seed});
    CHECK(wrong == 0);
    CHECK(done.warp_collectives == 2 * 13);
  }
}

TEST_CASE("sim: store_transposed makes columns rows, 16 bits at a time") {
  int wrong = 0;
  launch<32, 4 * 128>([&] {
    const int l = ptx::thread_index();
    // Element (row, column) of matrix i is 64 i + 8 row + column.
    const auto pair = [&](int i) {
      const auto first = static_cast<std::uint32_t>(64 * i + l / 4 * 8 + l % 4 * 2);
      return first | (first + 1) << 16;
    };
    // Row c of the transposed matrix i goes to place 31 - (8 i + c), to see that addresses are a lane's own.
    ptx::store_transposed(ptx::shared_memory() + (31 - l) * 16, pair(0), pair(1), pair(2), pair(3));
    ptx::sync_warp();
    for (int r = 0; r < 8; ++r) {
      std::uint16_t stored;
      std::memcpy(&stored, ptx::shared_memory() + (31 - l) * 16 + 2 * r, 2);
      wrong += stored != l / 8 * 64 + r * 8 + l % 8;
    }
  });
  CHECK(wrong == 0);
}

TEST_CASE("sim: registers are taken from what others gave back") {
  const auto kernel = [](auto raise) {
    return [=] {
      if (ptx::thread_index() / 128 == 0)
        ptx::lower_registers<24>();
      else
        ptx::raise_registers<decltype(raise)::value>();
    };
  };
  CHECK(fault_of<384, 4>(kernel(std::integral_constant<int, 240>{})) == "");
  // 168 at first, 144 given back by one of three.
  CHECK(has(fault_of<384, 4>(kernel(std::integral_constant<int, 248>{})), "wait for 248 registers"));
}

TEST_CASE("sim: conversions") {
  CHECK(ptx::pack<octavo::e4m3>(1, -2, 1e9f, NAN) == 0x7f7ec038u);
  CHECK(ptx::pack<octavo::e4m3>(-INFINITY, INFINITY, 0, -0.0f) == 0x80007efeu);
  CHECK(ptx::pack<octavo::e4m3>(1.0625f, 1.1875f, 0x1p-10f, 0x1.8p-10f) == 0x01003a38u);  // ties to even
  CHECK(ptx::pack<octavo::e5m2>(1, INFINITY, -1e9f, -NAN) == 0x7ffb7b3cu);
  float x[4];
  ptx::unpack_e4m3(0xff7e0138u, x);
  CHECK(x[0] == 1);
  CHECK(x[1] == 0x1p-9f);
  CHECK(x[2] == 448);
  CHECK(std::isnan(x[3]));
  CHECK(ptx::permute_bytes(0x33221100u, 0x77665544u, 0x7531u) == 0x77553311u);
  CHECK(ptx::permute_bytes(0x33221100u, 0x77665544u, 0x0426u) == 0x00442266u);
  CHECK(ptx::exp2_approximate(3) == 8);
  CHECK(ptx::exp2_approximate(-126) == 0x1p-126f);
  CHECK(ptx::exp2_approximate(-126.5f) == 0);
  CHECK(ptx::exp2_approximate(-INFINITY) == 0);
  CHECK(ptx::exp2_approximate(INFINITY) == INFINITY);
  CHECK(ptx::exp2_approximate(1e-40f) == 1);
  CHECK(std::isnan(ptx::exp2_approximate(NAN)));
}
