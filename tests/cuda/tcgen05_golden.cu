// SPDX-License-Identifier: Apache-2.0
// Computes products of random operands on a Blackwell GPU and writes them, bit for bit, to a file that the unit tests
// compare the simulator's model with:
//
//     nvcc -std=c++20 -O2 -gencode arch=compute_100f,code=sm_100f -Iinclude -Itests -o golden tests/cuda/tcgen05_golden.cu
//     ./golden tests/golden
//
// writes tcgen05_e4m3.bin (kind::f8f6f4 and kind::mxf8f6f4, N 64 and 128, chains of 1 to 4 instructions).
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/golden_device.hpp"
#include "cuda/golden_file.hpp"
#include "cuda/golden_kernels.hpp"
#include "cuda/golden_operands.hpp"

namespace {

using golden::check;
using golden::on_device;

template <int columns>
void compute(golden::product& p) {
  const on_device<std::uint8_t> a(p.a), b(p.b), a_scale(p.a_scale), b_scale(p.b_scale);
  const on_device<float> c(p.c), d(p.d);
  const golden::tcgen05_product<columns> kernel{
      a.at, b.at, a_scale.at, b_scale.at, c.at, d.at, static_cast<int>(p.steps)};
  golden::launch(kernel);
  check(cudaMemcpy(p.d.data(), d.at, p.d.size() * sizeof(float), cudaMemcpyDeviceToHost), "kernel");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s folder\n", argv[0]);
    return 2;
  }
  std::vector<golden::product> all = golden::tcgen05_products();
  for (golden::product& p : all) p.columns == 64 ? compute<64>(p) : compute<128>(p);
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  const std::string path = std::string(argv[1]) + "/tcgen05_e4m3.bin";
  if (!golden::write(path.c_str(), all)) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return 1;
  }
  std::printf("%s: %zu products of %s\n", path.c_str(), all.size(), device.name);
}
