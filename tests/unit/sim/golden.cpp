// SPDX-License-Identifier: Apache-2.0
// The models of products against what devices computed: files that tests/cuda/*_golden.cu wrote.
#include <octavo/backends/sim/product.hpp>
#include <octavo/backends/sim/runtime.hpp>
#include <octavo/backends/sim/tensor_product.hpp>
#include <octavo/backends/sim/warp_product.hpp>
#include <octavo/numeric/e4m3.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

#include "cuda/golden_file.hpp"
#include "cuda/golden_kernels.hpp"
#include "cuda/golden_operands.hpp"

namespace {

namespace sim = octavo::backends::sim;
using octavo::e4m3;

/// Empty if there is no such file, which is said; a damaged one is a failure.
std::vector<golden::product> load(const std::string& name) {
  std::vector<golden::product> all;
  const std::string path = std::string(OCTAVO_TEST_SOURCE_DIR) + "/golden/" + name;
  const golden::found what = golden::read(path.c_str(), all);
  if (what == golden::found::nothing) {
    MESSAGE("skipped: no " << name << " in tests/golden (tests/cuda/*_golden.cu write them on a GPU)");
    return {};
  }
  REQUIRE(what == golden::found::whole);
  REQUIRE(!all.empty());
  return all;
}

std::vector<float> by_model_of_wgmma(const golden::product& p, sim::accumulation how) {
  auto bytes = std::make_unique<sim::operand_bytes>();
  std::vector<float> d = p.c;
  const std::size_t depth = 32 * p.steps;
  for (std::size_t s = 0; s < p.steps; ++s) {
    for (std::size_t r = 0; r < p.rows; ++r) std::copy_n(&p.a[r * depth + 32 * s], 32, &bytes->a[32 * r]);
    for (std::size_t c = 0; c < p.columns; ++c) std::copy_n(&p.b[c * depth + 32 * s], 32, &bytes->b[32 * c]);
    sim::multiply(*bytes, d.data(), static_cast<int>(p.columns), how);
  }
  return d;
}
std::vector<float> by_model_of_tcgen05(const golden::product& p) {
  auto x = std::make_unique<sim::mma_operands>();
  std::vector<float> d = p.c;
  const std::size_t depth = 32 * p.steps;
  for (std::size_t s = 0; s < p.steps; ++s) {
    for (std::size_t r = 0; r < p.rows; ++r) {
      std::copy_n(&p.a[r * depth + 32 * s], 32, &x->a[32 * r]);
      x->a_scale[r] = p.scaled ? p.a_scale[r * p.steps + s] : std::uint8_t{127};
    }
    for (std::size_t c = 0; c < p.columns; ++c) {
      std::copy_n(&p.b[c * depth + 32 * s], 32, &x->b[32 * c]);
      x->b_scale[c] = p.scaled ? p.b_scale[c * p.steps + s] : std::uint8_t{127};
    }
    sim::multiply_scaled(*x, sim::fp8::e4m3, sim::fp8::e4m3, d.data(), static_cast<int>(p.columns),
                         sim::accumulation::model);
  }
  return d;
}

/// Elements of the file's D that are not these, to the last bit.
int different_from(const golden::product& p, const std::vector<float>& d) {
  int count = 0;
  for (std::size_t i = 0; i < d.size(); ++i) {
    const bool same = std::bit_cast<std::uint32_t>(d[i]) == std::bit_cast<std::uint32_t>(p.d[i]);
    if (!same && count == 0)
      MESSAGE("row " << i / p.columns << ", column " << i % p.columns << ": C " << p.c[i] << ", in the file " << p.d[i]
                     << ", by the model " << d[i]);
    count += !same;
  }
  return count;
}

}  // namespace

TEST_CASE("sim: wgmma's model is a Hopper GPU's, bit for bit") {
  for (const golden::product& p : load("wgmma_e4m3.bin")) {
    REQUIRE(p.rows == 64);
    INFO("N " << p.columns << ", " << p.steps << " instructions");
    CHECK(different_from(p, by_model_of_wgmma(p, sim::accumulation::model)) == 0);
  }
}

TEST_CASE("sim: tcgen05's model is a Blackwell GPU's, bit for bit") {
  for (const golden::product& p : load("tcgen05_e4m3.bin")) {
    REQUIRE(p.rows == 128);
    INFO("N " << p.columns << ", " << p.steps << " instructions, scaled: " << p.scaled);
    CHECK(different_from(p, by_model_of_tcgen05(p)) == 0);
  }
}

TEST_CASE("sim: the kernels that compute such files compute what the models say") {
  for (golden::product& p : golden::wgmma_products()) {
    const sim::options how{.seed = p.steps, .accumulator = sim::accumulation::model};
    const int steps = static_cast<int>(p.steps);
    if (p.columns == 64)
      sim::launch(golden::wgmma_product<64>{p.a.data(), p.b.data(), p.c.data(), p.d.data(), steps}, how);
    else
      sim::launch(golden::wgmma_product<128>{p.a.data(), p.b.data(), p.c.data(), p.d.data(), steps}, how);
    CHECK(different_from(p, by_model_of_wgmma(p, sim::accumulation::model)) == 0);
  }
  for (golden::product& p : golden::tcgen05_products()) {
    const sim::options how{.seed = p.steps, .accumulator = sim::accumulation::model};
    const auto launch = [&]<int columns>(std::integral_constant<int, columns>) {
      sim::launch(golden::tcgen05_product<columns>{p.a.data(), p.b.data(), p.scaled ? p.a_scale.data() : nullptr,
                                                   p.scaled ? p.b_scale.data() : nullptr, p.c.data(), p.d.data(),
                                                   static_cast<int>(p.steps)},
                  how);
    };
    p.columns == 64 ? launch(std::integral_constant<int, 64>{}) : launch(std::integral_constant<int, 128>{});
    CHECK(different_from(p, by_model_of_tcgen05(p)) == 0);
  }
}

/// What the assembler makes of mma.sync on FP8 for Hopper: both halves from zero, then an addition. (The kernels write the
/// halves out, the first one on top of D: cuda/ptx/mma.hpp.)
TEST_CASE("sim: the halves of a Hopper GPU's mma.sync are those of the model, bit for bit") {
  for (const golden::product& p : load("mma_e4m3.bin")) {
    REQUIRE(p.rows == 16);
    REQUIRE(p.columns == 8);
    const std::size_t depth = 32 * p.steps;
    std::vector<float> d = p.c;
    for (std::size_t r = 0; r < p.rows; ++r)
      for (std::size_t c = 0; c < p.columns; ++c)
        for (std::size_t s = 0; s < p.steps; ++s) {
          float a[32], b[32];
          for (std::size_t k = 0; k < 32; ++k) {
            a[k] = e4m3::decode(p.a[r * depth + 32 * s + k]);
            b[k] = e4m3::decode(p.b[c * depth + 32 * s + k]);
          }
          d[r * p.columns + c] += sim::half_product(a, b, 1, sim::half_product(a, b, 0, 0.0f));
        }
    CHECK(different_from(p, d) == 0);
  }
}

TEST_CASE("sim: files of products are read as they were written") {
  golden::product p;
  p.rows = 2;
  p.columns = 3;
  p.steps = 1;
  p.size();
  for (std::size_t i = 0; i < p.a.size(); ++i) p.a[i] = static_cast<std::uint8_t>(i);
  p.d[4] = 1.5f;
  const std::string file =
      (std::filesystem::temp_directory_path() / ("octavo_golden_" + std::to_string(getpid()))).string();
  const char* path = file.c_str();
  std::vector<golden::product> all;
  REQUIRE(golden::write(path, {p, p}));
  CHECK(golden::read(path, all) == golden::found::whole);
  REQUIRE(all.size() == 2);
  CHECK(all[1].a == p.a);
  CHECK(all[1].d == p.d);
  std::FILE* f = std::fopen(path, "ab");
  std::fputc(0, f);
  std::fclose(f);
  CHECK(golden::read(path, all) == golden::found::damaged);
  std::remove(path);
  CHECK(golden::read(path, all) == golden::found::nothing);
}
