// SPDX-License-Identifier: Apache-2.0
// Products of the simulated tcgen05 against plain loops over (row, column, k), for every way in which operands can lie.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_test;

constexpr int depth = 128, steps = depth / 32;

/// Scales of a matrix [rows, depth]: E8M0 codes, one per row and 32 elements.
struct scale_matrix {
  int rows, blocks;
  std::vector<std::uint8_t> codes;
  std::uint8_t operator()(int r, int block) const { return codes[static_cast<std::size_t>(r * blocks + block)]; }
};
scale_matrix random_scales(int rows, unsigned seed, int spread = 6) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> draw(127 - spread, 127 + spread);
  scale_matrix s{rows, steps, std::vector<std::uint8_t>(static_cast<std::size_t>(rows * steps))};
  for (std::uint8_t& c : s.codes) c = static_cast<std::uint8_t>(draw(random));
  return s;
}
/// In tiles of the 128x4 layout.
image scale_tiles(const scale_matrix& s) {
  image out(static_cast<int>(octavo::swizzled_scale_bytes(s.rows, s.blocks)));
  std::fill_n(out.data(), out.size(), std::uint8_t{200});  // padding that would be seen
  for (int r = 0; r < s.rows; ++r)
    for (int b = 0; b < s.blocks; ++b) out.data()[octavo::swizzled_scale_offset(r, b, s.blocks)] = s(r, b);
  return out;
}

/// The sum of one instruction and what stood there, each exact to 64 bits, rounded to FP32.
float plain_step(const code_matrix& a, const code_matrix& b, int r, int c, int step, int exponent, float before) {
  long double sum = 0;
  for (int k = 32 * step; k < 32 * step + 32; ++k) sum += static_cast<long double>(a(r, k)) * b(c, k);
  return static_cast<float>(std::ldexp(sum, exponent) + before);
}

template <bool scaled, class A, class B, int columns>
int wrong_products(placement pa, placement pb, bool a_in_tensor_memory, sim::options how) {
  const bool a5 = std::is_same_v<A, e5m2>, b5 = std::is_same_v<B, e5m2>;
  const code_matrix a = random_codes(128, depth, 11, a5, a5 ? 19 : 10),
                    b = random_codes(columns, depth, 12, b5, b5 ? 19 : 10);
  const scale_matrix sa = random_scales(128, 13), sb = random_scales(columns, 14);
  const image of_a = placed(a, pa), of_b = placed(b, pb), of_sa = scale_tiles(sa), of_sb = scale_tiles(sb);
  const image all = joined({of_a, of_b, of_sa, of_sb});
  const int b_at = of_a.size(), sa_at = b_at + of_b.size(), sb_at = sa_at + of_sa.size();
  constexpr int a_column = 256, sa_column = 300, sb_column = 304;
  std::vector<float> d(128 * columns);
  launch<128, 64 * 1024>(
      [&] {
        char* shared = ptx::shared_memory();
        const tensor_frame frame{60 * 1024};
        frame.begin();
        frame.fill(all.data(), all.size());
        const ptx::tensor_address t = frame.address();
        const int warp = ptx::thread_index() / 32;
        if (a_in_tensor_memory) {  // row = lane, 4 elements per column
          std::uint32_t row[depth / 4];
          for (int i = 0; i < depth / 4; ++i) {
            row[i] = 0;
            for (int e = 0; e < 4; ++e) row[i] |= std::uint32_t{a.code(ptx::thread_index(), 4 * i + e)} << 8 * e;
          }
          ptx::tcgen05_store(t.column(a_column).of_warp(warp), row);
          ptx::tcgen05_wait_stores();
          tensor_frame::sync();
        }
        if (ptx::thread_index() == 0) {
          const auto how_plain = ptx::mma_instruction::plain<A, B>(
              columns, a_in_tensor_memory ? ptx::major::k : major_of(pa), major_of(pb));
          const auto how_scaled = ptx::mma_instruction::scaled<A, B>(
              columns, a_in_tensor_memory ? ptx::major::k : major_of(pa), major_of(pb));
          if (scaled) {
            ptx::tcgen05_copy_scales(t.column(sa_column), ptx::shared_operand::scale_tile(shared + sa_at));
            for (int i = 0; i < (columns + 127) / 128; ++i)
              ptx::tcgen05_copy_scales(t.column(sb_column + 4 * i),
                                       ptx::shared_operand::scale_tile(shared + sb_at + 512 * i));
          }
          for (int k = 0; k < steps; ++k) {
            const ptx::shared_operand of_b32 = operand_at(shared + b_at, pb, columns, depth, 32 * k);
            const ptx::shared_operand of_a32 = operand_at(shared, pa, 128, depth, 32 * k);
            const ptx::tensor_address a32 = t.column(a_column + 8 * k);
            if (scaled && a_in_tensor_memory)
              ptx::tcgen05_mma_scaled(t, a32, of_b32, how_scaled.scale_bytes(k, k), t.column(sa_column),
                                      t.column(sb_column), k > 0);
            else if (scaled)
              ptx::tcgen05_mma_scaled(t, of_a32, of_b32, how_scaled.scale_bytes(k, k), t.column(sa_column),
                                      t.column(sb_column), k > 0);
            else if (a_in_tensor_memory)
              ptx::tcgen05_mma(t, a32, of_b32, how_plain, k > 0);
            else
              ptx::tcgen05_mma(t, of_a32, of_b32, how_plain, k > 0);
          }
          ptx::tcgen05_commit(frame.barrier(0));
        }
        frame.barrier(0).wait(0);
        ptx::tcgen05_fence_after();
        float row[columns];
        constexpr int whole = columns / 32 * 32;
        if constexpr (whole > 0) ptx::tcgen05_load<whole>(row, 0, t.of_warp(warp));
        if constexpr (whole < columns) ptx::tcgen05_load<columns - whole>(row, whole, t.column(whole).of_warp(warp));
        ptx::tcgen05_wait_loads(row);
        std::copy(row, row + columns, d.begin() + ptx::thread_index() * columns);
        frame.end();
      },
      how);
  int wrong = 0;
  for (int r = 0; r < 128; ++r)
    for (int c = 0; c < columns; ++c) {
      float expected = 0;
      for (int k = 0; k < steps; ++k)
        expected = plain_step(a, b, r, c, k, scaled ? sa(r, k) + sb(c, k) - 254 : 0, expected);
      wrong += d[static_cast<std::size_t>(r * columns + c)] != expected;
    }
  return wrong;
}

constexpr placement k_major[] = {{128, false}, {64, false}, {32, false}, {16, false}};
constexpr placement r_major[] = {{128, true}, {64, true}, {32, true}, {16, true}};

}  // namespace

TEST_CASE("sim: tcgen05: every swizzle along K and along the rows, with and without scales") {
  for (const placement a : k_major)
    for (const placement b : r_major) {
      INFO("A by " << a.width << " bytes along K, B by " << b.width << " along its rows");
      CHECK(wrong_products<false, e4m3, e4m3, 128>(a, b, false, {.seed = 1}) == 0);
      CHECK(wrong_products<true, e4m3, e4m3, 128>(a, b, false, {.seed = 2}) == 0);
    }
  for (int i = 0; i < 4; ++i) {
    CHECK(wrong_products<true, e4m3, e4m3, 128>(r_major[i], k_major[i], false, {.seed = 3}) == 0);
    CHECK(wrong_products<true, e4m3, e4m3, 128>(r_major[i], r_major[i], false, {}) == 0);
    CHECK(wrong_products<true, e4m3, e4m3, 128>(k_major[i], k_major[i], false, {.seed = 5}) == 0);
  }
}

TEST_CASE("sim: tcgen05: A from tensor memory") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CHECK(wrong_products<false, e4m3, e4m3, 64>(k_major[0], k_major[0], true, {.seed = seed}) == 0);
    CHECK(wrong_products<true, e4m3, e4m3, 128>(k_major[0], r_major[0], true, {.seed = seed}) == 0);
  }
}

TEST_CASE("sim: tcgen05: N from 16 to 256") {
  CHECK(wrong_products<true, e4m3, e4m3, 16>(k_major[0], k_major[0], false, {}) == 0);
  CHECK(wrong_products<true, e4m3, e4m3, 48>(k_major[0], k_major[1], false, {}) == 0);
  CHECK(wrong_products<true, e4m3, e4m3, 144>(k_major[0], r_major[3], false, {}) == 0);
  CHECK(wrong_products<true, e4m3, e4m3, 256>(k_major[0], r_major[0], false, {}) == 0);
  CHECK(wrong_products<false, e4m3, e4m3, 256>(k_major[0], k_major[0], false, {}) == 0);
}

TEST_CASE("sim: tcgen05: E5M2 on either side") {
  CHECK(wrong_products<true, e5m2, e4m3, 64>(k_major[0], k_major[0], false, {}) == 0);
  CHECK(wrong_products<true, e4m3, e5m2, 64>(k_major[0], k_major[0], false, {}) == 0);
  CHECK(wrong_products<false, e5m2, e5m2, 64>(k_major[0], k_major[0], true, {}) == 0);
}

TEST_CASE("sim: tcgen05: the swizzle of the wrappers is that of the tests") {
  for (const int width : {16, 32, 64, 128})
    for (int r = 0; r < 32; ++r)
      for (int b = 0; b < width; ++b)
        CHECK(ptx::swizzled_offset(swizzle_named(width), r, b) == place({width, false}, 32, width, r, b));
}
