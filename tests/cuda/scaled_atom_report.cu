// SPDX-License-Identifier: Apache-2.0
// A sum of block-scaled warp products of sm_120a, for the compiler's report. Nothing here runs.
#include <octavo/backends/cuda/simt/scaled_atom.hpp>

#include "report.hpp"

using octavo::backends::nvidia::scaled_mma_atom;

namespace {

struct scaled_atom_kernel {
  static constexpr int threads = 32, shared_bytes = 0, blocks_per_sm = 1;
  static constexpr int words = scaled_mma_atom::words;

  const std::uint32_t* operands;  ///< [steps][2 words + 2 scales][lanes]
  float* sums;
  int steps;

  __device__ void operator()() const {
    float d[scaled_mma_atom::sums] = {};
    const std::uint32_t* at = operands + threadIdx.x;
    OCTAVO_NO_UNROLL
    for (int step = 0; step < steps; ++step, at += (2 * words + 2) * threads) {
      std::uint32_t l[words], r[words];
      for (int w = 0; w < words; ++w) {
        l[w] = at[w * threads];
        r[w] = at[(words + w) * threads];
      }
      scaled_mma_atom::mma(d, l, r, at[2 * words * threads], at[(2 * words + 1) * threads]);
    }
    for (int i = 0; i < scaled_mma_atom::sums; ++i) sums[i * threads + threadIdx.x] = d[i];
  }
};

}  // namespace

extern const reported scaled_atom;
const reported scaled_atom = report<scaled_atom_kernel>();
