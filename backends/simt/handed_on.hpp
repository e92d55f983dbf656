// SPDX-License-Identifier: Apache-2.0
// A fragment that one warp hands to another through shared memory, lane by lane: each lane of the second gets what the
// lane of the same number had.
#pragma once

#include <octavo/backends/simt/machine.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Two buffers for fragments of `elements` floats, of `threads` threads that give; as many take. A barrier of the block has
/// to lie between giving and taking a buffer, and between taking and giving it again.
template <class M, int elements, int threads>
struct handed_on {
  static_assert(elements % 4 == 0, "handed on by 16 bytes");
  alignas(16) float of[2][elements / 4][threads][4];

  OCTAVO_DEVICE void give(const float (&x)[elements], int buffer) {
    const int thread = M::thread_index() % threads;
    OCTAVO_UNROLL
    for (int i = 0; i < elements; i += 4) __builtin_memcpy(of[buffer][i / 4][thread], x + i, 16);
  }
  OCTAVO_DEVICE void take(float (&x)[elements], int buffer) const {
    const int thread = M::thread_index() % threads;
    OCTAVO_UNROLL
    for (int i = 0; i < elements; i += 4) __builtin_memcpy(x + i, of[buffer][i / 4][thread], 16);
  }
};
/// Nobody hands anything on.
template <class M, int elements>
struct handed_on<M, elements, 0> {};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
