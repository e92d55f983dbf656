// SPDX-License-Identifier: Apache-2.0
// Products through the simulated tensor cores against plain loops.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "unit/sim/support.hpp"

namespace {

using namespace sim_test;

double dot(const matrix& a, int row, const matrix& b, int other) {
  double sum = 0;
  for (int k = 0; k < a.columns; ++k) sum += static_cast<double>(a(row, k)) * b(other, k);
  return sum;
}

image join(const image& a, const image& b) {
  image both(a.size() + b.size());
  std::memcpy(both.data(), a.data(), static_cast<std::size_t>(a.size()));
  std::memcpy(both.data() + a.size(), b.data(), static_cast<std::size_t>(b.size()));
  return both;
}

/// D = A B^T of 64 x columns x 64, A from shared memory or from registers.
template <int columns, bool from_registers>
void check_product(sim::options how) {
  const matrix a = random_matrix(64, 64, 1), b = random_matrix(columns, 64, 2);
  const image ab = join(chunked(a), chunked(b));
  std::vector<float> d(64 * columns, 0.0f);
  launch<128, 64 * 64 + columns * 64 + 8>(
      [&] {
        char* shared = ptx::shared_memory();
        load_all(ab.data(), ab.size(), barrier_at(ab.size()));
        float acc[columns / 2];
        std::uint32_t registers[2][4];
        const int t = ptx::thread_index();
        for (int k = 0; k < 2; ++k)
          for (int r = 0; r < 4; ++r)  // row, 4 bytes at 4 q + 16 (r / 2) of 32
            std::memcpy(&registers[k][r], shared + ((2 * k + r / 2) * 64 + row_of(t, 0) + r % 2 * 8) * 16 + t % 4 * 4,
                        4);
        ptx::wgmma_fence();
        for (int k = 0; k < 2; ++k) {
          const ptx::matrix of_b = ptx::matrix::at(shared + 64 * 64, columns).along_k(2 * k);
          if constexpr (from_registers)
            ptx::wgmma(acc, registers[k], of_b, k > 0);
          else
            ptx::wgmma(acc, ptx::matrix::at(shared, 64).along_k(2 * k), of_b, k > 0);
        }
        ptx::wgmma_commit();
        ptx::wgmma_wait<0>();
        for (int i = 0; i < columns / 2; ++i)
          d[static_cast<std::size_t>(row_of(t, i) * columns + column_of(t, i))] = acc[i];
      },
      how);
  int wrong = 0;
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < columns; ++c)
      wrong += d[static_cast<std::size_t>(r * columns + c)] != static_cast<float>(dot(a, r, b, c));
  CHECK(wrong == 0);
}

template <int columns>
void check_products() {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    check_product<columns, false>({.seed = seed});
    check_product<columns, true>({.seed = seed});
  }
}

}  // namespace

TEST_CASE("sim: a product from shared memory and from registers is that of a plain loop, for every N") {
  check_products<32>();
  check_products<64>();
  check_products<72>();
  check_products<128>();
  check_products<136>();
}

TEST_CASE("sim: two warpgroups multiply halves of a row image of 128 tokens") {
  const matrix a = random_matrix(128, 128, 3), b = random_matrix(128, 128, 4);
  image ab(2 * 128 * 128);
  for (int t = 0; t < 128; ++t)
    for (int c = 0; c < 128; ++c) {
      ab.data()[hopper::row_image_at(t, c)] = code(a(t, c));
      ab.data()[128 * 128 + hopper::row_image_at(t, c)] = code(b(t, c));
    }
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    std::vector<float> d(128 * 128, 0.0f);
    const sim::report done = launch<256, 2 * 128 * 128 + 8>(
        [&] {
          char* shared = ptx::shared_memory();
          load_all(ab.data(), ab.size(), barrier_at(ab.size()));
          const int t = ptx::thread_index(), group = t / 128;
          float acc[64];
          for (float& x : acc) x = 1;
          ptx::wgmma_fence();
          for (int k = 0; k < 4; ++k)
            ptx::wgmma(acc, ptx::matrix::at(shared + group * 64 * 16, 128).along_k(2 * k),
                       ptx::matrix::at(shared + 128 * 128, 128).along_k(2 * k), true);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>();
          for (int i = 0; i < 64; ++i)
            d[static_cast<std::size_t>((group * 64 + row_of(t, i)) * 128 + column_of(t, i))] = acc[i];
        },
        {.seed = seed});
    CHECK(done.products == 8);
    CHECK(done.bulk_bytes == ab.size());
    int wrong = 0;
    for (int r = 0; r < 128; ++r)
      for (int c = 0; c < 128; ++c)
        wrong += std::fabs(d[static_cast<std::size_t>(r * 128 + c)] - (1 + dot(a, r, b, c))) > 1e-4;
    CHECK(wrong == 0);
  }
}

TEST_CASE("sim: P goes from accumulators to operand registers in the order of a column image") {
  constexpr int tokens = 128, channels = 64, rows = channels + hopper::ones_rows;
  const matrix q = random_matrix(64, 32, 5, 0.5f), k = random_matrix(tokens, 32, 6, 0.5f);
  const matrix v = random_matrix(tokens, channels, 7);
  const image of_q = chunked(q), of_k = chunked(k);
  const image of_v = column_image<hopper::token_order::registers>(v, hopper::ones_rows);
  const image all = join(join(of_q, of_k), of_v);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> o(64 * rows, 0.0f);
    launch<128, 64 * 32 + tokens * 32 + tokens * rows + 8>(
        [&] {
          char* shared = ptx::shared_memory();
          load_all(all.data(), all.size(), barrier_at(all.size()));
          const int t = ptx::thread_index();
          float s[tokens / 2], acc[rows / 2];
          ptx::wgmma_fence();
          ptx::wgmma(s, ptx::matrix::at(shared, 64), ptx::matrix::at(shared + of_q.size(), tokens), false);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>();
          std::uint32_t p[tokens / 32][4];
          for (int step = 0; step < tokens / 32; ++step)
            for (int r = 0; r < 4; ++r) {
              const float* x = s + 8 * (2 * step + r / 2) + 2 * (r % 2);  // 16 tokens: two blocks of 8 columns
              p[step][r] = ptx::pack<octavo::e4m3>(x[0], x[1], x[4], x[5]);
            }
          ptx::wgmma_fence();
          for (int step = 0; step < tokens / 32; ++step)
            ptx::wgmma(acc, p[step], ptx::matrix::at(shared + of_q.size() + of_k.size(), rows).along_k(2 * step),
                       step > 0);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>();
          for (int i = 0; i < rows / 2; ++i)
            o[static_cast<std::size_t>(row_of(t, i) * rows + column_of(t, i))] = acc[i];
        },
        {.seed = seed});
    int wrong = 0;
    for (int r = 0; r < 64; ++r)
      for (int c = 0; c < rows; ++c) {
        double expected = 0;
        for (int token = 0; token < tokens; ++token)
          expected += static_cast<double>(octavo::e4m3::round(static_cast<float>(dot(q, r, k, token)))) *
                      (c < channels ? v(token, c) : 1.0f);
        wrong += std::fabs(o[static_cast<std::size_t>(r * rows + c)] - expected) > 1e-4;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("sim: dS is stored transposed in pairs of rows and contracted with a column image of that order") {
  constexpr int tokens = 64, keys = 64, channels = 64;
  const matrix a = random_matrix(tokens, 32, 8, 0.5f), b = random_matrix(keys, 32, 9, 0.5f);
  const matrix q = random_matrix(tokens, channels, 10);
  const image of_a = chunked(a), of_b = chunked(b), of_q = column_image<hopper::token_order::paired_rows>(q);
  const image all = join(join(of_a, of_b), of_q);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    std::vector<float> dk(keys * channels, 0.0f);
    launch<128, 64 * 32 * 2 + tokens * channels + 16 + tokens * keys>(
        [&] {
          char* shared = ptx::shared_memory();
          char* ds = shared + all.size() + 16;  // [chunk of 16 tokens][key][16]
          load_all(all.data(), all.size(), barrier_at(all.size()));
          const int t = ptx::thread_index(), lane = t % 32, warp = t / 32;
          float s[keys / 2], acc[channels / 2];
          ptx::wgmma_fence();
          ptx::wgmma(s, ptx::matrix::at(shared, 64), ptx::matrix::at(shared + of_a.size(), keys), false);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>();
          for (int n = 0; n < keys / 8; n += 4) {
            std::uint32_t x[4];
            for (int i = 0; i < 4; ++i) {
              const float* e = s + 4 * (n + i);  // rows r and r + 8 of a column are one 16-bit element
              x[i] = ptx::pack<octavo::e4m3>(e[0], e[2], e[1], e[3]);
            }
            ptx::store_transposed(ds + (warp * keys + 8 * n + lane) * 16, x[0], x[1], x[2], x[3]);
          }
          ptx::fence_async();
          ptx::sync_named(1, 128);
          ptx::wgmma_fence();
          for (int k = 0; k < tokens / 32; ++k)
            ptx::wgmma(acc, ptx::matrix::at(ds, keys).along_k(2 * k),
                       ptx::matrix::at(shared + of_a.size() + of_b.size(), channels).along_k(2 * k), k > 0);
          ptx::wgmma_commit();
          ptx::wgmma_wait<0>();
          for (int i = 0; i < channels / 2; ++i)
            dk[static_cast<std::size_t>(row_of(t, i) * channels + column_of(t, i))] = acc[i];
        },
        {.seed = seed});
    int wrong = 0;
    for (int key = 0; key < keys; ++key)
      for (int c = 0; c < channels; ++c) {
        double expected = 0;
        for (int token = 0; token < tokens; ++token)
          expected += static_cast<double>(octavo::e4m3::round(static_cast<float>(dot(a, token, b, key)))) * q(token, c);
        wrong += std::fabs(dk[static_cast<std::size_t>(key * channels + c)] - expected) > 1e-4;
      }
    CHECK(wrong == 0);
  }
}
