// SPDX-License-Identifier: Apache-2.0
// Warps of 32 and waves of 64 lanes: exchanges, votes, instructions that a model computes, barriers.
#include <octavo/backends/sim/exchange.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "unit/sim/support.hpp"

namespace {

using namespace sim_test;

template <int lanes_, int kernel_threads, class Function>
struct kernel_of_lanes {
  static constexpr int threads = kernel_threads;
  static constexpr int shared_bytes = 4096;
  static constexpr int warp_lanes = lanes_;
  Function function;
  std::int64_t blocks() const { return 1; }
  void operator()() const { function(); }
};

template <int lanes, int threads, class Function>
sim::report launch_lanes(Function function, std::uint64_t seed = 0) {
  return sim::launch(kernel_of_lanes<lanes, threads, Function>{function}, {.seed = seed});
}
template <int lanes, int threads, class Function>
std::string fault_of_lanes(Function function) {
  try {
    launch_lanes<lanes, threads>(function);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

/// A kernel that names its machine, as kernels of backends/simt do.
struct machine_kernel {
  struct machine {
    static constexpr int lanes = 64;
  };
  static constexpr int threads = 128;
  static constexpr int shared_bytes = 0;
  int* lanes_seen;
  std::int64_t blocks() const { return 2; }
  void operator()() const { *lanes_seen = sim::lanes_of_warp(); }
};

/// Every exchange against where its lane should have read from, computed lane by lane.
template <int lanes>
int wrong_exchanges(std::uint64_t seed) {
  int wrong = 0;
  const auto run = [&] {
    const int t = ptx::thread_index(), lane = sim::lane_index(), first = t - lane, row = t - t % 16, n = t % 16;
    wrong += lane != t % lanes || sim::warp_index() != t / lanes;
    const auto expect = [&](int got, int source) { wrong += got != source; };
    for (int mask = 1; mask < lanes; mask *= 2) expect(sim::shuffle_xor(t, mask), t ^ mask);
    expect(sim::shuffle_index(t, lane * 5 + 3), first + (lane * 5 + 3) % lanes);
    expect(sim::broadcast(t, lanes - 1), first + lanes - 1);
    expect(sim::dpp_quad_perm(t, 3, 0, 2, 1), t / 4 * 4 + (t % 4 == 0 ? 3 : t % 4 == 1 ? 0 : t % 4 == 2 ? 2 : 1));
    for (int count = 1; count < 16; ++count) {
      expect(sim::dpp_row_shl(t, count, -7), n + count > 15 ? -7 : t + count);
      expect(sim::dpp_row_shr(t, count, -7), n - count < 0 ? -7 : t - count);
      expect(sim::dpp_row_ror(t, count), row + (n + 16 - count) % 16);
      expect(sim::dpp_row_newbcast(t, count), row + count);
    }
    expect(sim::dpp_row_mirror(t), row + 15 - n);
    expect(sim::dpp_row_half_mirror(t), t - t % 8 + 7 - t % 8);
    expect(sim::dpp_row_bcast15(t, -7), lane < 16 ? -7 : row - 1);
    expect(sim::dpp_row_bcast31(t, -7), lane < 32 ? -7 : first + 31);
    expect(static_cast<int>(sim::shuffle_xor(0.5f * static_cast<float>(t), 3) * 2), t ^ 3);
    std::uint64_t odd = 0xaaaaaaaa'aaaaaaaau;
    if (lanes == 32) odd >>= 32;
    wrong += sim::ballot(t % 2 == 1) != odd;
  };
  launch_lanes<lanes, 192>(run, seed);
  return wrong;
}

}  // namespace

TEST_CASE("sim: exchanges between the lanes of warps and waves") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CHECK(wrong_exchanges<32>(seed) == 0);
    CHECK(wrong_exchanges<64>(seed) == 0);
  }
}

TEST_CASE("sim: a kernel's machine says how many lanes a warp has") {
  int lanes_seen = 0;
  CHECK(sim::launch(machine_kernel{&lanes_seen}).blocks == 2);
  CHECK(lanes_seen == 64);
}

TEST_CASE("sim: a matrix instruction sees the registers of all lanes, and is counted by its name") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    int wrong = 0;
    const sim::report done = launch_lanes<64, 128>(
        [&] {
          const int t = ptx::thread_index();
          struct registers {
            int a;
            int* d;
          };
          for (int round = 0; round < 3; ++round) {
            int d = round;
            registers mine{t, &d};
            sim::matrix_instruction("test m1n1k64", mine, [](std::span<registers* const> lanes) {
              int sum = 0;
              for (const registers* r : lanes) sum += r->a;
              for (registers* r : lanes) *r->d += sum;
            });
            const int first = t / 64 * 64;
            wrong += d != round + 64 * first + 63 * 32;
          }
        },
        seed);
    CHECK(wrong == 0);
    CHECK(done.matrix_instructions.size() == 1);
    CHECK(done.matrix_instructions.at("test m1n1k64") == 6);
  }
}

TEST_CASE("sim: waves of 64 lanes are reached whole, and count whole at barriers") {
  CHECK(fault_of_lanes<64, 128>([] {
          sim::ballot(true);
          ptx::sync_block();
        }) == "");
  CHECK(has(fault_of_lanes<64, 64>([] {
              if (ptx::thread_index() < 32) ptx::sync_warp();
            }),
            "of its warp"));
  CHECK(has(fault_of_lanes<64, 64>([] {
              if (ptx::thread_index() < 32)
                sim::ballot(true);
              else
                sim::broadcast(1, 0);
            }),
            "while lane 0 of its warp is at ballot"));
  CHECK(has(fault_of_lanes<64, 128>([] {
              if (ptx::thread_index() < 64) ptx::sync_named(1, 128);
            }),
            "wait at barrier 1: 64 of 128"));
  CHECK(has(fault_of_lanes<32, 32>([] { sim::broadcast(1, 32); }), "reads lane 32 of a warp of 32 by broadcast"));
}
