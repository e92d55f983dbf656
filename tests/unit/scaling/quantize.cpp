// SPDX-License-Identifier: Apache-2.0
// The quantisers of every recipe against their rules, on planes with tails, outliers, zeros and non-finite elements.
#include <octavo/scaling/dequantize.hpp>
#include <octavo/scaling/quantize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace octavo;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

/// A tensor [b, s, h, d] of floats and room for its payloads and scales.
template <class Recipe, class E = typename Recipe::element>
struct plane_set {
  std::int64_t b, s, h, d;
  std::vector<float> x;
  std::vector<std::uint8_t> row, column, row_scale, column_scale;
  scale_layout<Recipe> at;
  quantized q;

  plane_set(std::int64_t b_, std::int64_t s_, std::int64_t h_, std::int64_t d_)
      : b(b_),
        s(s_),
        h(h_),
        d(d_),
        x(static_cast<std::size_t>(b * s * h * d)),
        row(x.size() * sizeof(E)),
        column(x.size()) {
    at = {{.count = b, .length = s}, h, d};
    row_scale.resize(static_cast<std::size_t>(at.rowwise_count()) * at.scale_bytes);
    column_scale.resize(static_cast<std::size_t>(at.columnwise_count()));
    q.rowwise = contiguous(static_cast<void*>(row.data()), dtype_of<E>::value, s, h, d);
    q.rowwise_scale = row_scale.data();
    q.columnwise = contiguous(static_cast<void*>(column.data()), dtype_of<E>::value, s, h, d);
    q.columnwise_scale = column_scale.data();
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < x.size(); ++i)  // magnitudes differ per token and per channel: no scale is 1
      x[i] = normal(generator) * std::exp2(static_cast<float>(i / static_cast<std::size_t>(d) % 7) - 3.3f) *
             (i % 31 == 0 ? 30.0f : 1.0f);
  }
  float& at_token(std::int64_t n, std::int64_t i, std::int64_t head, std::int64_t c) {
    return x[static_cast<std::size_t>(((n * s + i) * h + head) * d + c)];
  }
  void run() {
    const quantiser<Recipe, E> work{contiguous(x.data(), s, h, d), nullptr, q, at};
    for (std::int64_t head = 0; head < h; ++head) {
      if constexpr (Recipe::scale_per == recipe::granularity::tensor)
        for (std::int64_t n = 0; n < b; ++n) work.tensor_scale(n, head);
      for (std::int64_t slot = 0; slot < at.docs.slots(tile_block); ++slot)
        work.tile(at.docs.tile_at(slot, tile_block), head);
    }
  }
  std::vector<float> back(std::int64_t n, std::int64_t i, std::int64_t head) const {
    std::vector<float> out(static_cast<std::size_t>(d));
    dequantize_row<Recipe, E>(plane_of<Recipe>(q, at, n, head), i, static_cast<int>(d), out.data());
    return out;
  }
};

template <class E>
float power_of_two_scale(float amax) {
  return amax == 0 ? 1.0f : std::exp2(std::ceil(std::log2(amax / E::max)));
}

/// Each group of elements must be the rounding of x / scale by its own power of two.
template <class Recipe, class E, class Group>
void follows_rule(plane_set<Recipe, E>& set, Group amax_of) {
  set.run();
  for (std::int64_t n = 0; n < set.b; ++n)
    for (std::int64_t head = 0; head < set.h; ++head)
      for (std::int64_t i = 0; i < set.s; ++i) {
        const std::vector<float> back = set.back(n, i, head);
        for (std::int64_t c = 0; c < set.d; ++c) {
          const float scale = power_of_two_scale<E>(amax_of(n, head, i, c));
          REQUIRE(back[static_cast<std::size_t>(c)] == E::round(set.at_token(n, i, head, c) / scale) * scale);
        }
      }
}

}  // namespace

TEST_CASE("token: one power of two per token") {
  plane_set<recipe::token> set(2, 150, 3, 64);
  for (std::int64_t c = 0; c < 64; ++c) set.at_token(1, 3, 1, c) = 0;
  follows_rule(set, [&](auto n, auto h, auto i, auto) {
    float amax = 0;
    for (std::int64_t c = 0; c < 64; ++c) amax = std::max(amax, std::abs(set.at_token(n, i, h, c)));
    return amax;
  });
}

TEST_CASE("tile: one power of two per 128 tokens; a tail from its valid rows alone") {
  plane_set<recipe::tile> set(2, 150, 3, 64);
  follows_rule(set, [&](auto n, auto h, auto i, auto) {
    float amax = 0;
    for (std::int64_t t = i / 128 * 128; t < std::min<std::int64_t>(set.s, i / 128 * 128 + 128); ++t)
      for (std::int64_t c = 0; c < 64; ++c) amax = std::max(amax, std::abs(set.at_token(n, t, h, c)));
    return amax;
  });
}

TEST_CASE("mx32, row-wise: one power of two per 32 channels") {
  plane_set<recipe::mx32> set(2, 40, 2, 96);
  follows_rule(set, [&](auto n, auto h, auto i, auto c) {
    float amax = 0;
    for (std::int64_t e = c / 32 * 32; e < c / 32 * 32 + 32; ++e)
      amax = std::max(amax, std::abs(set.at_token(n, i, h, e)));
    return amax;
  });
}

TEST_CASE("mx32, column-wise: one power of two per 32 tokens of a channel") {
  plane_set<recipe::mx32> set(2, 150, 2, 32);
  set.run();
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t head = 0; head < 2; ++head) {
      const payload_plane plane = plane_of<recipe::mx32>(set.q, set.at, n, head);
      for (std::int64_t i = 0; i < set.s; ++i)
        for (std::int64_t c = 0; c < 32; ++c) {
          float amax = 0;
          for (std::int64_t t = i / 32 * 32; t < std::min<std::int64_t>(set.s, i / 32 * 32 + 32); ++t)
            amax = std::max(amax, std::abs(set.at_token(n, t, head, c)));
          const float scale = power_of_two_scale<e4m3>(amax);
          REQUIRE(static_cast<float>(e8m0{plane.columnwise_blocks[i / 32 * 32 + c]}) == scale);
          REQUIRE(e4m3::decode(plane.columnwise[i * plane.columnwise_stride + c]) ==
                  e4m3::round(set.at_token(n, i, head, c) / scale));
        }
    }
}

TEST_CASE("tensor: descale = amax / 448 in FP32, per batch and head") {
  plane_set<recipe::tensor> set(2, 20, 2, 32);
  set.run();
  for (std::int64_t n = 0; n < 2; ++n)
    for (std::int64_t head = 0; head < 2; ++head) {
      float amax = 0;
      for (std::int64_t i = 0; i < 20; ++i)
        for (std::int64_t c = 0; c < 32; ++c) amax = std::max(amax, std::abs(set.at_token(n, i, head, c)));
      const float descale = amax / 448.0f;
      for (std::int64_t i = 0; i < 20; ++i) {
        const auto back = set.back(n, i, head);
        for (std::int64_t c = 0; c < 32; ++c)
          REQUIRE(back[static_cast<std::size_t>(c)] == e4m3::round(set.at_token(n, i, head, c) / descale) * descale);
      }
    }
}

TEST_CASE("E5M2 gradients use their own range") {
  plane_set<recipe::e5m2_gradients<recipe::token>, e5m2> set(1, 10, 1, 32);
  follows_rule(set, [&](auto n, auto h, auto i, auto) {
    float amax = 0;
    for (std::int64_t c = 0; c < 32; ++c) amax = std::max(amax, std::abs(set.at_token(n, i, h, c)));
    return amax;
  });
}

TEST_CASE("a non-finite element becomes NaN and leaves its neighbours as they were") {
  for (const float bad : {nan_value, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    plane_set<recipe::tile> clean(1, 40, 1, 32), dirty(1, 40, 1, 32);
    clean.at_token(0, 5, 0, 3) = 0;
    dirty.at_token(0, 5, 0, 3) = bad;
    clean.run();
    dirty.run();
    CHECK(clean.row_scale == dirty.row_scale);
    for (std::int64_t i = 0; i < 40; ++i) {
      const auto a = clean.back(0, i, 0), b = dirty.back(0, i, 0);
      for (std::size_t c = 0; c < 32; ++c)
        if (i == 5 && c == 3)
          CHECK(std::isnan(b[c]));
        else
          CHECK(a[c] == b[c]);
    }
  }
}

TEST_CASE("zeros have scale 1 and a zero payload") {
  plane_set<recipe::token> set(1, 4, 1, 32);
  std::fill(set.x.begin(), set.x.end(), 0.0f);
  set.run();
  for (const std::uint8_t scale : set.row_scale) CHECK(static_cast<float>(e8m0{scale}) == 1);
  for (const std::uint8_t byte : set.row) CHECK(byte == 0);
}

TEST_CASE("batch 1 is what batch 0 would be alone: nothing is scaled or padded across planes") {
  for (const std::int64_t s : {16, 17, 129}) {
    plane_set<recipe::mx32> two(2, s, 1, 128), one(1, s, 1, 128);
    std::copy(two.x.begin() + s * 128, two.x.end(), one.x.begin());
    two.run();
    one.run();
    CHECK(std::equal(one.row.begin(), one.row.end(), two.row.begin() + s * 128));
    CHECK(std::equal(one.row_scale.begin(), one.row_scale.end(), two.row_scale.begin() + s * 4));
    CHECK(std::equal(one.column.begin(), one.column.end(), two.column.begin() + s * 128));
    CHECK(std::equal(one.column_scale.begin(), one.column_scale.end(), two.column_scale.begin() + (s + 31) / 32 * 128));
  }
}

TEST_CASE("results are rounded to their type") {
  CHECK(round_to(dtype::bf16, 1.00390625f) == 1.0f);
  CHECK(round_to(dtype::f16, 1.0f + 0x1p-11f) == 1.0f);
  CHECK(round_to(dtype::f32, 1.00390625f) == 1.00390625f);
}
