// SPDX-License-Identifier: Apache-2.0
// The sums of tcgen05 products against slow ones written from the rules, and which scale reaches which element.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_test;

/// Integer and exponent of a finite code: value = significand * 2^exponent, the exponent that of the last place.
struct parts {
  int significand, exponent;
};
parts parts_of(std::uint8_t code, bool is_e5m2) {
  const int mantissa_bits = is_e5m2 ? 2 : 3, bias = is_e5m2 ? 15 : 7;
  const int field = (code & 0x7f) >> mantissa_bits, fraction = code & ((1 << mantissa_bits) - 1);
  const int magnitude = field == 0 ? fraction : fraction + (1 << mantissa_bits);
  return {(code & 0x80) != 0 ? -magnitude : magnitude, std::max(field, 1) - bias - mantissa_bits};
}

/// x * 2^shift, cut toward zero.
__int128 shifted(__int128 x, int shift) {
  if (shift >= 0) return x << shift;
  if (shift < -120) return 0;
  return x < 0 ? -(-x >> -shift) : x >> -shift;
}

/// The rules of tensor_product.hpp for one element, in integers.
float cut_sum(const std::uint8_t* a, const std::uint8_t* b, bool a5, bool b5, int scale, float c) {
  const int places = (a5 ? 2 : 3) + (b5 ? 2 : 3);  // of a product's significand behind the point
  int largest = std::numeric_limits<int>::min();
  for (int k = 0; k < 32; ++k) {
    const parts x = parts_of(a[k], a5), y = parts_of(b[k], b5);
    if (x.significand * y.significand != 0) largest = std::max(largest, x.exponent + y.exponent + places + scale);
  }
  int of_c = 0;
  const double fraction = std::frexp(static_cast<double>(c), &of_c);  // [.5, 1) * 2^of_c
  if (c != 0) largest = std::max({largest, of_c - 1, -126});
  if (largest == std::numeric_limits<int>::min()) return 0;
  __int128 sum = 0;
  for (int k = 0; k < 32; ++k) {
    const parts x = parts_of(a[k], a5), y = parts_of(b[k], b5);
    sum +=
        shifted(static_cast<__int128>(x.significand) * y.significand, x.exponent + y.exponent + scale - largest + 25);
  }
  sum += shifted(static_cast<__int128>(std::ldexp(fraction, 53)), of_c - 53 - largest + 25);
  // To 24 bits, toward zero.
  int drop = 0;
  for (__int128 magnitude = sum < 0 ? -sum : sum; magnitude >> drop >= 1 << 24;) ++drop;
  return static_cast<float>(std::ldexp(static_cast<double>(shifted(shifted(sum, -drop), drop)), largest - 25));
}

struct drawn {
  std::unique_ptr<sim::mma_operands> x = std::make_unique<sim::mma_operands>();
  std::vector<float> d;
};
drawn draw(int columns, unsigned seed, bool a5, bool b5, int spread) {
  drawn out;
  std::mt19937 random(seed);
  const code_matrix a = random_codes(128, 32, seed, a5), b = random_codes(columns, 32, seed + 1, b5);
  std::copy(a.codes.begin(), a.codes.end(), out.x->a.begin());
  std::copy(b.codes.begin(), b.codes.end(), out.x->b.begin());
  std::uniform_int_distribution<int> scale(127 - spread, 127 + spread);
  std::generate(out.x->a_scale.begin(), out.x->a_scale.end(), [&] { return static_cast<std::uint8_t>(scale(random)); });
  std::generate(out.x->b_scale.begin(), out.x->b_scale.end(), [&] { return static_cast<std::uint8_t>(scale(random)); });
  for (int i = 0; i < 128 * columns; ++i) {  // a third of C is far smaller, a third far larger, some of it zero
    const float m = std::uniform_real_distribution<float>(-2, 2)(random);
    out.d.push_back(i % 17 == 0 ? 0.0f : std::ldexp(m, static_cast<int>(random() % 3) * 14 - 4 + (i % 3 - 1) * spread));
  }
  return out;
}

int different(unsigned seed, bool a5, bool b5, int spread, int columns = 48) {
  drawn it = draw(columns, seed, a5, b5, spread);
  const std::vector<float> before = it.d;
  sim::multiply_scaled(*it.x, a5 ? sim::fp8::e5m2 : sim::fp8::e4m3, b5 ? sim::fp8::e5m2 : sim::fp8::e4m3, it.d.data(),
                       columns, sim::accumulation::model);
  int count = 0;
  for (int m = 0; m < 128; ++m)
    for (int n = 0; n < columns; ++n) {
      const auto at = static_cast<std::size_t>(m * columns + n);
      const int scale = it.x->a_scale[static_cast<std::size_t>(m)] + it.x->b_scale[static_cast<std::size_t>(n)] - 254;
      const float expected = cut_sum(&it.x->a[static_cast<std::size_t>(32 * m)],
                                     &it.x->b[static_cast<std::size_t>(32 * n)], a5, b5, scale, before[at]);
      count += std::bit_cast<std::uint32_t>(expected + 0.0f) != std::bit_cast<std::uint32_t>(it.d[at] + 0.0f);
    }
  return count;
}

}  // namespace

TEST_CASE("sim: tcgen05: sums cut to 25 bits below the largest exponent, as the rules say in integers") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    CHECK(different(seed, false, false, 0) == 0);
    CHECK(different(10 + seed, false, false, 12) == 0);
    CHECK(different(20 + seed, true, false, 6) == 0);
    CHECK(different(30 + seed, false, true, 6) == 0);
    CHECK(different(40 + seed, true, true, 3) == 0);
  }
}

TEST_CASE("sim: tcgen05: the cut is there, and toward zero") {
  sim::mma_operands x;
  x.a.fill(0);
  x.b.fill(0);
  x.a_scale.fill(127);
  x.b_scale.fill(127);
  x.a[0] = x.b[0] = code(1);
  std::vector<float> d(128 * 16, 0.0f);
  const auto of_c = [&](float c, sim::accumulation how) {
    d[0] = c;
    sim::multiply_scaled(x, sim::fp8::e4m3, sim::fp8::e4m3, d.data(), 16, how);
    return d[0];
  };
  using enum sim::accumulation;
  // The result is cut to 24 bits: 2^25 + 3 stands in steps of 4, 2^25 - 3 in steps of 2.
  x.b[0] = code(3);
  CHECK(of_c(0x1p25f, model) == 0x1p25f);
  CHECK(of_c(0x1p25f, ideal) == 0x1p25f + 4);
  CHECK(of_c(-0x1p25f, model) == -0x1p25f + 4);
  // Addends are cut before they are summed: beside 2^16 and -2^16, 2^-9 is there and 2^-10 is not.
  x.a[0] = x.b[0] = code(256);
  x.a[1] = code(0x1p-6f);
  x.b[1] = code(0x1p-3f);
  CHECK(of_c(-0x1p16f, model) == 0x1p-9f);
  CHECK(of_c(-0x1p16f, ideal) == 0x1p-9f);
  x.b[1] = code(0x1p-4f);
  CHECK(of_c(-0x1p16f, model) == 0);
  CHECK(of_c(-0x1p16f, ideal) == 0x1p-10f);
  // Scales take part in the exponents.
  x.a_scale[0] = 127 + 30;
  x.b_scale[0] = 127 - 10;
  CHECK(of_c(-0x1p36f, model) == 0);
  CHECK(of_c(-0x1p36f, ideal) == 0x1p10f);
}

TEST_CASE("sim: tcgen05: a scale reaches its row and its 32 elements of K, and no other") {
  constexpr int columns = 256, blocks = 4;
  const code_matrix ones{columns, 32, std::vector<std::uint8_t>(columns * 32, code(1))};
  const image of_ones = placed(ones, {32, false});
  std::mt19937 random(5);
  for (int trial = 0; trial < 24; ++trial) {
    const bool of_a = trial % 2 == 0;
    const int row = static_cast<int>(random() % (of_a ? 128 : columns)), block = static_cast<int>(random() % blocks);
    // Scales of 1 but one of 2, in the layout of the quantise kernels; its byte in tensor memory is `block`.
    image tiles(3 * 512);
    std::fill_n(tiles.data(), tiles.size(), std::uint8_t{127});
    tiles.data()[(of_a ? 0 : 512) + octavo::swizzled_scale_offset(row, block, blocks)] = 128;
    const image all = joined({of_ones, tiles});
    std::vector<float> d(128 * columns * blocks);
    launch<128, 16 * 1024>([&] {
      const tensor_frame frame{15 * 1024};
      char* shared = ptx::shared_memory();
      frame.begin();
      frame.fill(all.data(), all.size());
      const ptx::tensor_address t = frame.address();
      for (int k = 0; k < blocks; ++k) {
        if (ptx::thread_index() == 0) {
          if (k == 0)
            for (int i = 0; i < 3; ++i)
              ptx::tcgen05_copy_scales(t.column(256 + 4 * i),
                                       ptx::shared_operand::scale_tile(shared + of_ones.size() + 512 * i));
          const ptx::shared_operand x = ptx::shared_operand::k_major(shared, ptx::swizzle::bytes_32);
          ptx::tcgen05_mma_scaled(t, x, x, ptx::mma_instruction::scaled<e4m3, e4m3>(columns).scale_bytes(k, k),
                                  t.column(256), t.column(260), false);
          ptx::tcgen05_commit(frame.barrier(0));
        }
        frame.barrier(0).wait(k % 2);
        ptx::tcgen05_fence_after();
        float x[columns];
        ptx::tcgen05_load(x, t.of_warp(ptx::thread_index() / 32));
        ptx::tcgen05_wait_loads(x);
        std::copy(x, x + columns, d.begin() + (k * 128 + ptx::thread_index()) * columns);
        tensor_frame::sync();
      }
      frame.end();
    });
    int wrong = 0;
    for (int k = 0; k < blocks; ++k)
      for (int r = 0; r < 128; ++r)
        for (int c = 0; c < columns; ++c)
          wrong += d[static_cast<std::size_t>((k * 128 + r) * columns + c)] !=
                   (k == block && (of_a ? r : c) == row ? 64.0f : 32.0f);
    CHECK(wrong == 0);
  }
}

TEST_CASE("sim: tcgen05: NaN and infinities") {
  sim::mma_operands x;
  x.a.fill(code(1));
  x.b.fill(0x3c);  // 1 in E5M2
  x.a_scale.fill(127);
  x.b_scale.fill(127);
  x.a[3 * 32 + 5] = 0x7f;  // NaN in row 3
  x.a_scale[4] = 255;      // a NaN scale of row 4
  x.b[7 * 32 + 1] = 0x7c;  // infinity in column 7
  x.b_scale[9] = 255;      // a NaN scale of column 9
  x.a[6 * 32 + 1] = 0;     // row 6: 0 times that infinity
  for (const auto how : {sim::accumulation::ideal, sim::accumulation::model}) {
    std::vector<float> d(128 * 16, 1.0f);
    d[8 * 16 + 2] = std::numeric_limits<float>::infinity();
    sim::multiply_scaled(x, sim::fp8::e4m3, sim::fp8::e5m2, d.data(), 16, how);
    int wrong = 0;
    for (int m = 0; m < 128; ++m)
      for (int n = 0; n < 16; ++n) {
        const float value = d[static_cast<std::size_t>(m * 16 + n)];
        if (m == 3 || m == 4 || n == 9 || (m == 6 && n == 7))
          wrong += !std::isnan(value);
        else if (n == 7 || (m == 8 && n == 2))
          wrong += value != std::numeric_limits<float>::infinity();
        else
          wrong += value != (m == 6 ? 32.0f : 33.0f);
      }
    CHECK(wrong == 0);
  }
}
