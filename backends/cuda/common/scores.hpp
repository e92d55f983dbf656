// SPDX-License-Identifier: Apache-2.0
// What all loops do to a single score or weight, so that they see the same to the last bit.
#pragma once

#include <octavo/algorithm/softmax.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/backends/simt/powers.hpp>

#include <cmath>
#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// The functions that the shared formulas ask of a backend.
struct functions {
  static OCTAVO_DEVICE float exp2(float x) { return ptx::exp2_approximate(x); }
  static OCTAVO_DEVICE float tanh(float x) { return tanhf(x); }
  static OCTAVO_DEVICE float multiply(float a, float b) { return ptx::multiply(a, b); }
  template <class E>
  static OCTAVO_DEVICE std::uint32_t pack(float a, float b, float c, float d) {
    return ptx::pack<E>(a, b, c, d);
  }
  template <class E>
  static OCTAVO_DEVICE void unpack(std::uint32_t word, float (&x)[4]) {
    static_assert(std::is_same_v<E, e4m3>, "only P is unpacked");
    ptx::unpack_e4m3(word, x);
  }
};

using simt::at_least_tiny, simt::is_large, simt::negative_power_of_two, simt::power_of_two_scale;

/// Not 0 where a tile holds a NaN or an infinity.
OCTAVO_HD inline std::uint32_t any_bit(const std::uint32_t* nonfinite) {
  return nonfinite[0] | nonfinite[1] | nonfinite[2] | nonfinite[3];
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
