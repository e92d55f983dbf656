// SPDX-License-Identifier: Apache-2.0
// The block-scaled warp product, for the assembler. Nothing here runs.
#include <octavo/backends/cuda/simt/scaled_atom.hpp>

using octavo::backends::nvidia::scaled_mma_atom;

__global__ void multiply(const std::uint32_t* operands, float* sums) {
  constexpr int lanes = 32, words = scaled_mma_atom::words;
  std::uint32_t l[words], r[words];
  for (int w = 0; w < words; ++w) {
    l[w] = operands[w * lanes + threadIdx.x];
    r[w] = operands[(words + w) * lanes + threadIdx.x];
  }
  float d[scaled_mma_atom::sums] = {};
  const std::uint32_t* scales = operands + 2 * words * lanes + threadIdx.x;
  scaled_mma_atom::mma(d, l, r, scales[0], scales[lanes]);
  for (int i = 0; i < scaled_mma_atom::sums; ++i) sums[i * lanes + threadIdx.x] = d[i];
}
