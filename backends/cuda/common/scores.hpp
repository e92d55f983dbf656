// SPDX-License-Identifier: Apache-2.0
// What all loops do to a single score or weight, so that they see the same to the last bit.
#pragma once

#include <octavo/algorithm/softmax.hpp>
#include <octavo/backends/cuda/ptx/convert.hpp>
#include <octavo/backends/simt/powers.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

/// The functions that the shared formulas ask of a backend.
struct functions {
  static OCTAVO_DEVICE float exp2(float x) { return ptx::exp2_approximate(x); }
  static OCTAVO_DEVICE float tanh(float x) { return tanhf(x); }
};

using simt::at_least_tiny, simt::is_large, simt::negative_power_of_two, simt::power_of_two_scale;

/// s * factor + shift: fused, or rounded first where the row's M is large, as the forward does it.
OCTAVO_DEVICE float shifted_score(float s, float factor, float shift, bool large) {
  return large ? ptx::multiply(s, factor) + shift : fmaf(s, factor, shift);
}

/// Not 0 where a tile holds a NaN or an infinity.
OCTAVO_HD inline std::uint32_t any_bit(const std::uint32_t* nonfinite) {
  return nonfinite[0] | nonfinite[1] | nonfinite[2] | nonfinite[3];
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
