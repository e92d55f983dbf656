// SPDX-License-Identifier: Apache-2.0
// Payload bytes as column images hold them, without branches.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/simt/scale_bits.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

using simt::nonfinite_bytes, simt::reciprocal_of, simt::scale_for;

/// What a column image holds where an element is not finite: -0, which multiplies as a zero does.
inline constexpr std::uint8_t nonfinite_in_columns = 0x80;

/// A word as a column image holds it where a tile has such bytes: they are -0, and every other zero is +0.
template <class E>
OCTAVO_DEVICE constexpr std::uint32_t marked_bytes(std::uint32_t bytes) {
  const std::uint32_t nonfinite = nonfinite_bytes<E>(bytes) >> 7;
  const std::uint32_t nonzero = ((bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu) >> 7 & 0x01010101u;
  return (bytes & (nonzero & ~nonfinite) * 0xff) | nonfinite * nonfinite_in_columns;
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
