// SPDX-License-Identifier: Apache-2.0
// How a tile of 128 tokens stands in memory, byte for byte what tensor cores read from shared memory without swizzle:
// chunk k holds channels [16 k, 16 k + 16) of all tokens, token after token. A core matrix, 8 tokens x 16 channels, is
// then 128 consecutive bytes.
#pragma once

#include <octavo/backends/cuda/common/visible_tiles.hpp>
#include <octavo/backends/cuda/ptx/device.hpp>

#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cuda_common {

inline constexpr int chunk_bytes = 16;  ///< of a row that stand together: the instruction's core matrix is 8 x 16 bytes
/// Of a core matrix. Images begin at a multiple, so that none lies across two of shared memory's lines of 128 bytes.
inline constexpr int matrix_bytes = 8 * chunk_bytes;

/// Where an element of a tile stands in its row image.
OCTAVO_HD constexpr int row_image_at(int token, int channel) {
  return (channel / chunk_bytes * tile_tokens + token) * chunk_bytes + channel % chunk_bytes;
}

OCTAVO_DEVICE std::uint32_t or_over_warp(std::uint32_t bits) {
  OCTAVO_UNROLL
  for (int lanes = 1; lanes < ptx::warp_threads; lanes *= 2) bits |= ptx::shuffle_xor(bits, lanes);
  return bits;
}

/// Four words to an address that is a multiple of 16.
OCTAVO_DEVICE void store_words(std::uint8_t* to, std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  const std::uint32_t words[4] = {a, b, c, d};
  std::memcpy(__builtin_assume_aligned(to, 16), words, 16);
}

/// Transposes 2 x 2 words of two lanes whose numbers differ in the bit `lanes`: the lower of the two gets (its x, the
/// other's x), the upper (the other's y, its y).
OCTAVO_DEVICE void transpose_between_lanes(std::uint32_t& x, std::uint32_t& y, int lanes, bool upper) {
  const std::uint32_t got = ptx::shuffle_xor(upper ? x : y, lanes);
  x = upper ? got : x;
  y = upper ? y : got;
}

/// Writes two neighbouring tokens of each thread into a row image: the first is the thread's `token`, x and y are the 8
/// bytes of both from `channel` on. Two lanes give each other halves, so that a lane has 16 channels of one of the two:
/// then every store of the warp fills 64 (d = 128) or 128 bytes in a row.
OCTAVO_DEVICE void store_pair(std::uint32_t (&x)[2], std::uint32_t (&y)[2], int token, int channel, int lane,
                              std::uint8_t* image) {
  const bool upper = lane % 2 != 0;
  transpose_between_lanes(x[0], y[0], 1, upper);
  transpose_between_lanes(x[1], y[1], 1, upper);
  store_words(image + row_image_at(token + upper, channel / chunk_bytes * chunk_bytes), x[0], x[1], y[0], y[1]);
}

}  // namespace backends::cuda_common
OCTAVO_END_NAMESPACE
