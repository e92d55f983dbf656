// SPDX-License-Identifier: Apache-2.0
// The CPU's product: against float64, and independent of how a tile is blocked.
#include <octavo/backends/cpu/mma.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cpu = octavo::backends::cpu_detail;

namespace {

std::vector<float> randn(int count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(count));
  for (float& e : x) e = normal(generator);
  return x;
}

}  // namespace

TEST_CASE("C += A B") {
  for (const int rows : {1, 3, 8, 37, 128})
    for (const int columns : {32, 96, 256})
      for (const int depth : {1, 64, 128}) {
        auto a = randn(rows * depth, 1), b = randn(depth * columns, 2), c = randn(rows * columns, 3);
        const auto before = c;
        cpu::mma({c.data(), columns}, {a.data(), depth}, {b.data(), columns}, rows, columns, depth);
        double worst = 0;
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < columns; ++j) {
            double sum = before[static_cast<std::size_t>(i * columns + j)];
            for (int k = 0; k < depth; ++k)
              sum += static_cast<double>(a[static_cast<std::size_t>(i * depth + k)]) *
                     b[static_cast<std::size_t>(k * columns + j)];
            worst = std::max(worst, std::abs(sum - c[static_cast<std::size_t>(i * columns + j)]));
          }
        CHECK(worst < 1e-4);
      }
}

TEST_CASE("an element has the same bits whatever rows stand around it") {
  const int columns = 64, depth = 96;
  auto a = randn(37 * depth, 1), b = randn(depth * columns, 2);
  std::vector<float> whole(37 * columns, 0.0f), alone(columns, 0.0f);
  cpu::mma({whole.data(), columns}, {a.data(), depth}, {b.data(), columns}, 37, columns, depth);
  for (int i = 0; i < 37; ++i) {
    std::fill(alone.begin(), alone.end(), 0.0f);
    cpu::mma({alone.data(), columns}, {a.data() + i * depth, depth}, {b.data(), columns}, 1, columns, depth);
    for (int j = 0; j < columns; ++j)
      CHECK(alone[static_cast<std::size_t>(j)] == whole[static_cast<std::size_t>(i * columns + j)]);
  }
}

TEST_CASE("a zero factor carries nothing, a NaN behind a weight does") {
  std::vector<float> a{0, 2}, b(64, 1.0f), c(32, 0.0f);
  b[5] = std::numeric_limits<float>::quiet_NaN();  // row 0 of B: behind the zero
  cpu::mma_skipping_zeros({c.data(), 32}, {a.data(), 2}, {b.data(), 32}, 1, 32, 2);
  for (const float x : c) CHECK(x == 2);
  b[32 + 7] = std::numeric_limits<float>::infinity();
  cpu::mma_skipping_zeros({c.data(), 32}, {a.data(), 2}, {b.data(), 32}, 1, 32, 2);
  CHECK(std::isinf(c[7]));
  CHECK(c[6] == 4);
}
