// SPDX-License-Identifier: Apache-2.0
// Computes products of random operands on a Hopper GPU and writes them, bit for bit, to files that the unit tests compare
// the simulator's models with:
//
//     nvcc -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -Iinclude -Itests -o golden tests/cuda/wgmma_golden.cu
//     ./golden tests/golden
//
// writes wgmma_e4m3.bin (wgmma, N 64 and 128, chains of 1 to 4 instructions) and mma_e4m3.bin (mma.sync m16n8k32).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "cuda/golden_device.hpp"
#include "cuda/golden_file.hpp"
#include "cuda/golden_kernels.hpp"
#include "cuda/golden_operands.hpp"

namespace {

namespace ptx = octavo::backends::ptx;
using golden::check;
using golden::on_device;

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

void compute(golden::product& p) {
  const on_device<std::uint8_t> a(p.a), b(p.b);
  const on_device<float> c(p.c), d(p.d);
  const int steps = static_cast<int>(p.steps);
  if (p.rows == 16)
    multiply_warp<<<1, 32>>>(a.at, b.at, c.at, d.at, steps);
  else if (p.columns == 64)
    golden::launch(golden::wgmma_product<64>{a.at, b.at, c.at, d.at, steps});
  else
    golden::launch(golden::wgmma_product<128>{a.at, b.at, c.at, d.at, steps});
  check(cudaGetLastError(), "launch");
  check(cudaMemcpy(p.d.data(), d.at, p.d.size() * sizeof(float), cudaMemcpyDeviceToHost), "kernel");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s folder\n", argv[0]);
    return 2;
  }
  std::vector<golden::product> groups = golden::wgmma_products(), warps = golden::mma_products();
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
