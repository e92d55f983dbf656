// SPDX-License-Identifier: Apache-2.0
// Computes products of random operands on a Hopper GPU and writes them, bit for bit, to files that the unit tests compare
// the simulator's models with:
//
//     nvcc -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -Iinclude -Itests -o golden tests/cuda/wgmma_golden.cu
//     ./golden tests/golden
//
// writes wgmma_e4m3.bin (wgmma, N 64 and 128, chains of 1 to 4 instructions) and mma_e4m3.bin (mma.sync m16n8k32).
#include <octavo/backends/cuda/ptx/copy.hpp>
#include <octavo/backends/cuda/ptx/wgmma.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/golden_file.hpp"

namespace {

namespace ptx = octavo::backends::ptx;

/// splitmix64.
struct random_source {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
};

/// What operands a product has.
enum class kind {
  full,        ///< every code but NaN; C from far below the products to far above
  small,       ///< codes of one sign of C's: subnormal and small normal ones, so that the sum is near the cut
  cancelling,  ///< B such that products cancel pairwise to small rests
  nan,         ///< a few NaN
};

golden::product draw(std::uint32_t rows, std::uint32_t columns, std::uint32_t steps, kind how, std::uint64_t seed) {
  random_source random{seed};
  golden::product p;
  p.rows = rows;
  p.columns = columns;
  p.steps = steps;
  p.size();
  const auto code = [&] {
    for (;;) {
      const auto c = static_cast<std::uint8_t>(random.next() >> 56);
      if ((c & 0x7f) == 0x7f) continue;  // NaN
      if (how == kind::small && (c & 0x7f) >= 0x20) continue;
      return c;
    }
  };
  for (std::uint8_t& x : p.a) x = code();
  for (std::uint8_t& x : p.b) x = code();
  if (how == kind::cancelling)
    for (std::size_t k = 0; k + 1 < 32 * steps; k += 2) {
      for (std::size_t r = 0; r < rows; ++r) p.a[r * 32 * steps + k + 1] = p.a[r * 32 * steps + k];
      for (std::size_t c = 0; c < columns; ++c)
        p.b[c * 32 * steps + k + 1] = p.b[c * 32 * steps + k] ^ (random.next() % 8 == 0 ? 0x81 : 0x80);
    }
  if (how == kind::cancelling)
    for (std::uint8_t& x : p.b)
      if ((x & 0x7f) == 0x7f) x ^= 1;
  if (how == kind::nan) p.a[5] = 0x7f, p.b[70] = 0xff;
  const int low = how == kind::small ? -24 : -10, span = how == kind::small ? 20 : 32;
  for (std::size_t i = 0; i < p.c.size(); ++i) {
    const double fraction = 1 + static_cast<double>(random.next() >> 12) * 0x1p-52;
    const double x = std::ldexp(fraction, low + static_cast<int>(random.next() % static_cast<unsigned>(span)));
    p.c[i] = i % 11 == 0 ? 0.0f : static_cast<float>(random.next() % 2 != 0 ? x : -x);
  }
  return p;
}

/// One warpgroup; chunks of 16 bytes along K, as the wrappers' descriptor without swizzle wants them.
template <int columns>
__global__ void __launch_bounds__(128, 1)
    multiply(const std::uint8_t* a, const std::uint8_t* b, const float* c, float* d, int steps) {
  char* shared = ptx::shared_memory();
  const int t = ptx::thread_index(), depth = 32 * steps;
  char* of_b = shared + 64 * depth;
  for (int i = t; i < 64 * depth; i += 128) shared[(i % depth / 16 * 64 + i / depth) * 16 + i % 16] = a[i];
  for (int i = t; i < columns * depth; i += 128) of_b[(i % depth / 16 * columns + i / depth) * 16 + i % 16] = b[i];
  ptx::fence_async();
  ptx::sync_block();
  float x[columns / 2];
  const auto place = [&](int i) {
    return (t / 32 * 16 + t % 32 / 4 + i % 4 / 2 * 8) * columns + i / 4 * 8 + t % 4 * 2 + i % 2;
  };
  OCTAVO_UNROLL
  for (int i = 0; i < columns / 2; ++i) x[i] = c[place(i)];
  for (int s = 0; s < steps; ++s) {
    ptx::wgmma_fence();
    ptx::wgmma(x, ptx::matrix::at(shared, 64).along_k(2 * s), ptx::matrix::at(of_b, columns).along_k(2 * s), true);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::wgmma_touch(x);
  OCTAVO_UNROLL
  for (int i = 0; i < columns / 2; ++i) d[place(i)] = x[i];
}

/// One warp, one m16n8k32 (PTX ISA, "matrix fragments for mma.m16n8k32", 8-bit types).
__global__ void multiply_warp(const std::uint8_t* a, const std::uint8_t* b, const float* c, float* d, int steps) {
  const int lane = ptx::thread_index(), group = lane / 4, quad = lane % 4, depth = 32 * steps;
  float x[4];
  for (int i = 0; i < 4; ++i) x[i] = c[(group + i / 2 * 8) * 8 + 2 * quad + i % 2];
  for (int s = 0; s < steps; ++s) {
    std::uint32_t of_a[4], of_b[2];
    for (int r = 0; r < 4; ++r)
      std::memcpy(&of_a[r], a + (group + r % 2 * 8) * depth + 32 * s + 4 * quad + r / 2 * 16, 4);
    for (int r = 0; r < 2; ++r) std::memcpy(&of_b[r], b + group * depth + 32 * s + 4 * quad + r * 16, 4);
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
        : "r"(of_a[0]), "r"(of_a[1]), "r"(of_a[2]), "r"(of_a[3]), "r"(of_b[0]), "r"(of_b[1]));
  }
  for (int i = 0; i < 4; ++i) d[(group + i / 2 * 8) * 8 + 2 * quad + i % 2] = x[i];
}

void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  std::exit(1);
}

template <class T>
struct on_device {
  T* at = nullptr;
  explicit on_device(const std::vector<T>& x) {
    check(cudaMalloc(&at, x.size() * sizeof(T)), "cudaMalloc");
    check(cudaMemcpy(at, x.data(), x.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~on_device() { cudaFree(at); }
};

void compute(golden::product& p) {
  const on_device<std::uint8_t> a(p.a), b(p.b);
  const on_device<float> c(p.c), d(p.d);
  const int steps = static_cast<int>(p.steps);
  const std::size_t shared = p.a.size() + p.b.size();
  if (p.rows == 16)
    multiply_warp<<<1, 32>>>(a.at, b.at, c.at, d.at, steps);
  else if (p.columns == 64)
    multiply<64><<<1, 128, shared>>>(a.at, b.at, c.at, d.at, steps);
  else
    multiply<128><<<1, 128, shared>>>(a.at, b.at, c.at, d.at, steps);
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(p.d.data(), d.at, p.d.size() * sizeof(float), cudaMemcpyDeviceToHost), "kernel");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s folder\n", argv[0]);
    return 2;
  }
  std::vector<golden::product> groups, warps;
  for (std::uint32_t steps = 1; steps <= 4; ++steps) groups.push_back(draw(64, 64, steps, kind::full, steps));
  groups.push_back(draw(64, 64, 1, kind::small, 11));
  groups.push_back(draw(64, 64, 1, kind::cancelling, 12));
  groups.push_back(draw(64, 64, 2, kind::cancelling, 13));
  groups.push_back(draw(64, 64, 1, kind::nan, 14));
  groups.push_back(draw(64, 128, 1, kind::full, 15));
  groups.push_back(draw(64, 128, 4, kind::full, 16));
  for (std::uint64_t i = 0; i < 24; ++i)
    warps.push_back(draw(16, 8, 1 + i % 4,
                         i % 6 == 4   ? kind::small
                         : i % 6 == 5 ? kind::cancelling
                                      : kind::full,
                         100 + i));
  for (golden::product& p : groups) compute(p);
  for (golden::product& p : warps) compute(p);
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  const std::string folder = argv[1];
  for (const auto& [name, all] : {std::pair{"/wgmma_e4m3.bin", &groups}, std::pair{"/mma_e4m3.bin", &warps}}) {
    if (!golden::write((folder + name).c_str(), *all)) {
      std::fprintf(stderr, "cannot write %s%s\n", argv[1], name);
      return 1;
    }
    std::printf("%s%s: %zu products of %s\n", argv[1], name, all->size(), device.name);
  }
}
