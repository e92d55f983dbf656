// SPDX-License-Identifier: Apache-2.0
// A lane's part of an operand block, and one product of two of them: with or without the block's scales.
#pragma once

#include <octavo/backends/simt/images.hpp>

#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

inline constexpr std::uint32_t scale_of_one = e8m0::bias;

template <class M, bool scaled>
struct lane_operand {
  std::uint32_t words[image_layout<M>::words];
  OCTAVO_DEVICE void set_scale(std::uint32_t) {}
};
template <class M>
struct lane_operand<M, true> {
  std::uint32_t words[image_layout<M>::words];
  std::uint32_t scale;  ///< E8M0 in its lowest byte: of row scale_row(lane), block scale_block(lane) of the depth
  OCTAVO_DEVICE void set_scale(std::uint32_t x) { scale = x; }
};

/// A lane's part of operand block `block` of an image.
template <class M, bool scaled>
OCTAVO_DEVICE void load_block(const std::uint8_t* image, int block, int lane, lane_operand<M, scaled>& to) {
  using at = image_layout<M>;
  const std::uint8_t* const first = image + block * operand_block_bytes<M, scaled>;
  const std::uint8_t* const from = first + lane * at::piece_bytes;
  OCTAVO_UNROLL
  for (int piece = 0; piece < at::pieces; ++piece)
    __builtin_memcpy(to.words + piece * at::piece_words,
                     __builtin_assume_aligned(from + piece * M::lanes * at::piece_bytes, at::piece_bytes),
                     at::piece_bytes);
  if constexpr (scaled) to.scale = first[at::block_bytes + lane];
}

/// A lane's part of a left operand as the unit multiplies it, where that is not FP8 (atom.hpp: convert_left).
template <class M>
struct converted_operand {
  alignas(16) std::uint32_t words[2 * image_layout<M>::words];
};

/// d += l r^T with the atom A.
template <class A, class M, bool scaled>
OCTAVO_DEVICE void multiply(float (&d)[A::sums], const lane_operand<M, scaled>& l, const lane_operand<M, scaled>& r) {
  if constexpr (scaled)
    A::mma(d, l.words, r.words, l.scale, r.scale);
  else
    A::mma(d, l.words, r.words);
}
template <class A, class M>
OCTAVO_DEVICE void multiply(float (&d)[A::sums], const converted_operand<M>& l, const lane_operand<M, false>& r) {
  A::mma_converted(d, l.words, r.words);
}

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
