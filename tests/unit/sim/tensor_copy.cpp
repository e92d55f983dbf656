// SPDX-License-Identifier: Apache-2.0
// Copies of boxes of a tensor against plain loops: what is outside, where the swizzle puts things, what is counted; and a
// product of what they bring.
#include <octavo/backends/cuda/ptx/tensor_copy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_test;

/// A tensor [w, z, y, x] of bytes in rows of `pitch`.
struct bytes4 {
  int x, y, z, w, pitch;
  image data;
  bytes4(int x_, int y_, int z_, int w_, int pitch_)
      : x(x_), y(y_), z(z_), w(w_), pitch(pitch_), data(pitch_ * y_ * z_ * w_) {
    for (int i = 0; i < data.size(); ++i) data.data()[i] = static_cast<std::uint8_t>(i * 37 + i / 251 + 1);
  }
  /// Zero outside.
  std::uint8_t operator()(int i, int j, int k, int l) const {
    if (i < 0 || j < 0 || k < 0 || l < 0 || i >= x || j >= y || k >= z || l >= w) return 0;
    return data.data()[((l * z + k) * y + j) * pitch + i];
  }
  ptx::tensor_layout layout(int rank, int width, int rows, int planes, int groups) const {
    return {data.data(),
            rank,
            {x, y, z, w},
            {pitch, std::int64_t{pitch} * y, std::int64_t{pitch} * y * z},
            {width, rows, planes, groups},
            swizzle_named(width == 48 || width == 16 ? 16 : width)};
  }
};

/// Bytes of the box in shared memory that are not what they should be.
int wrong_bytes(const bytes4& t, int rank, int width, int rows, int planes, int groups, std::array<int, 4> first,
                std::uint64_t seed) {
  ptx::tensor_map map;
  REQUIRE(ptx::encode(map, t.layout(rank, width, rows, planes, groups)));
  const int total = width * rows * planes * groups, pattern = width == 48 ? 16 : width;
  int wrong = 0;
  const sim::report done = launch<32, 32 * 1024>(
      [&] {
        ptx::shared_barrier& barrier = barrier_at(31 * 1024);
        char* to = ptx::shared_memory() + 1024;
        if (ptx::thread_index() == 0) {
          barrier.init(1);
          ptx::fence_barriers();
        }
        ptx::sync_block();
        if (ptx::thread_index() == 0) {
          barrier.arrive_expecting(total);
          const auto [a, b, c, d] = first;
          if (rank == 2) ptx::tensor_load(to, map, a, b, barrier);
          if (rank == 3) ptx::tensor_load(to, map, a, b, c, barrier);
          if (rank == 4) ptx::tensor_load(to, map, a, b, c, d, barrier);
        }
        barrier.wait(0);
        if (ptx::thread_index() != 0) return;
        for (int row = 0; row < rows * planes * groups; ++row)
          for (int i = 0; i < width; ++i) {
            const int at = swizzle_of(bits_of(pattern), row * width + i);
            const std::uint8_t expected =
                t(first[0] + i, first[1] + row % rows, first[2] + row / rows % planes, first[3] + row / rows / planes);
            wrong += static_cast<std::uint8_t>(to[at]) != expected;
          }
        wrong += to[-1] != static_cast<char>(0xff) || to[total] != static_cast<char>(0xff);
      },
      {.seed = seed});
  CHECK(done.bulk_bytes == total);
  return wrong;
}

std::string fault_of_copy(const ptx::tensor_map& map, int offset, int expected) {
  return fault_of<32, 32 * 1024>([&, offset, expected] {
    if (ptx::thread_index() != 0) return;
    ptx::shared_barrier& barrier = barrier_at(31 * 1024);
    barrier.init(1);
    ptx::fence_barriers();
    barrier.arrive_expecting(expected);
    ptx::tensor_load(ptx::shared_memory() + offset, map, 0, 0, barrier);
    barrier.wait(0);
  });
}

}  // namespace

TEST_CASE("sim: boxes of a tensor arrive swizzled, with zeros for what is outside") {
  const bytes4 t(200, 50, 3, 2, 208);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    CHECK(wrong_bytes(t, 2, 128, 64, 1, 1, {0, 0, 0, 0}, seed) == 0);    // 50 rows and no more
    CHECK(wrong_bytes(t, 2, 128, 16, 1, 1, {128, 8, 0, 0}, seed) == 0);  // 72 bytes of 128
    CHECK(wrong_bytes(t, 2, 64, 16, 1, 1, {-5, -3, 0, 0}, seed) == 0);   // before the beginning
    CHECK(wrong_bytes(t, 2, 32, 24, 1, 1, {190, 40, 0, 0}, seed) == 0);
    CHECK(wrong_bytes(t, 2, 48, 20, 1, 1, {7, 1, 0, 0}, seed) == 0);    // no swizzle
    CHECK(wrong_bytes(t, 2, 128, 8, 1, 1, {300, 0, 0, 0}, seed) == 0);  // nothing inside
    CHECK(wrong_bytes(t, 3, 64, 30, 2, 1, {64, 30, 2, 0}, seed) == 0);  // one plane of two
    CHECK(wrong_bytes(t, 4, 32, 8, 3, 2, {16, 45, 1, 1}, seed) == 0);
  }
}

TEST_CASE("sim: layouts that a driver refuses, and copies that are wrong") {
  const bytes4 t(200, 50, 3, 2, 208);
  ptx::tensor_map map;
  const auto refused = [&](auto change) {
    ptx::tensor_layout layout = t.layout(2, 128, 64, 1, 1);
    change(layout);
    return !ptx::encode(map, layout);
  };
  CHECK(refused([](auto& l) { l.rank = 5; }));
  CHECK(refused([](auto& l) { l.rank = 1; }));
  CHECK(refused([](auto& l) { l.data = static_cast<const char*>(l.data) + 8; }));
  CHECK(refused([](auto& l) { l.strides[0] = 200; }));
  CHECK(refused([](auto& l) { l.box[1] = 257; }));
  CHECK(refused([](auto& l) { l.box[0] = 144; }));
  CHECK(refused([](auto& l) { l.pattern = ptx::swizzle::bytes_64; }));
  CHECK(has(fault_of_copy(map, 0, 128 * 64), "by a tensor_map that is not encoded"));
  CHECK(!refused([](auto&) {}));
  CHECK(fault_of_copy(map, 0, 128 * 64) == "");
  CHECK(has(fault_of_copy(map, 512, 128 * 64), "copies a box to offset 512: not a multiple of 1024"));
  CHECK(has(fault_of_copy(map, 0, 128 * 50), "1 of 1 arrivals have come, -1792 bytes are outstanding"));
  CHECK(has(fault_of_copy(map, 24 * 1024, 128 * 64), "copies over the barrier"));
  CHECK(
      has(fault_of<32, 16 * 1024>([&] { ptx::tensor_load(ptx::shared_memory(), map, 0, 0, 0, barrier_at(8 * 1024)); }),
          "copies from 3 coordinates of a tensor of rank 2"));
}

TEST_CASE("sim: a product of two boxes, one of them with rows outside") {
  constexpr int depth = 128, tokens = 100, keys = 64;
  const code_matrix a = even_codes(tokens, depth, 21), b = even_codes(keys, depth, 22);
  image of_a(tokens * depth), of_b(keys * depth);
  std::copy(a.codes.begin(), a.codes.end(), of_a.data());
  std::copy(b.codes.begin(), b.codes.end(), of_b.data());
  ptx::tensor_map map_a, map_b;
  REQUIRE(ptx::encode(map_a, {of_a.data(), 2, {depth, tokens}, {depth}, {128, 128}, ptx::swizzle::bytes_128}));
  REQUIRE(ptx::encode(map_b, {of_b.data(), 2, {depth, keys}, {depth}, {128, keys}, ptx::swizzle::bytes_128}));
  constexpr int b_at = 128 * depth, frame_at = b_at + keys * depth;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> d(128 * keys);
    launch<128, frame_at + tensor_frame::bytes>(
        [&] {
          const tensor_frame frame{frame_at};
          char* shared = ptx::shared_memory();
          frame.begin();
          if (ptx::thread_index() == 0) {
            frame.barrier(1).arrive_expecting(b_at + keys * depth);
            ptx::tensor_load(shared, map_a, 0, 0, frame.barrier(1));
            ptx::tensor_load(shared + b_at, map_b, 0, 0, frame.barrier(1));
            frame.barrier(1).wait(0);
            for (int k = 0; k < depth; k += 32)
              ptx::tcgen05_mma(frame.address(), operand_at(shared, {128, false}, 128, depth, k),
                               operand_at(shared + b_at, {128, false}, keys, depth, k),
                               ptx::mma_instruction::plain<e4m3, e4m3>(keys), k > 0);
            ptx::tcgen05_commit(frame.barrier(0));
          }
          frame.barrier(0).wait(0);
          ptx::tcgen05_fence_after();
          float row[keys];
          ptx::tcgen05_load(row, frame.address().of_warp(ptx::thread_index() / 32));
          ptx::tcgen05_wait_loads(row);
          std::copy(row, row + keys, d.begin() + ptx::thread_index() * keys);
          frame.end();
        },
        {.seed = seed});
    int wrong = 0;
    for (int r = 0; r < 128; ++r)
      for (int c = 0; c < keys; ++c) {
        double expected = 0;
        for (int k = 0; r < tokens && k < depth; ++k) expected += static_cast<double>(a(r, k)) * b(c, k);
        wrong += !(std::fabs(d[static_cast<std::size_t>(r * keys + c)] - expected) < 1e-4);
      }
    CHECK(wrong == 0);
  }
}
