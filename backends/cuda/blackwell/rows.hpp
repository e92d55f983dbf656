// SPDX-License-Identifier: Apache-2.0
// What threads that own a row each do with it: quantise it in blocks of 32, write it to a tensor, note what a NaN reached.
#pragma once

#include <octavo/backends/cuda/blackwell/products.hpp>
#include <octavo/backends/cuda/ptx/pairs.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// Elements [first, first + 32) of x, rounded to E with a power of two from their amax, in registers from `word` on.
/// Returns the scale's byte. What has overflowed is NaN, not a large number to be saturated.
template <class E, int N, int W>
OCTAVO_DEVICE std::uint32_t quantise_block(const float (&x)[N], int first, std::uint32_t (&packed)[W], int word) {
  float high[4];
  OCTAVO_UNROLL
  for (int i = 0; i < mx_block; ++i)
    high[i % 4] = i < 4 ? fabsf(x[first + i]) : fmaxf(high[i % 4], fabsf(x[first + i]));
  const float amax = fmaxf(fmaxf(high[0], high[1]), fmaxf(high[2], high[3]));  // a NaN is passed over
  const std::uint32_t bits = detail::bit_cast<std::uint32_t>(amax);
  const bool overflowed = bits >= detail::float_exponent_mask;
  const e8m0 scale = scale_for<E>(overflowed ? 0 : bits);
  const float up = overflowed ? detail::float_nan() : reciprocal_of(scale);
  OCTAVO_UNROLL
  for (int i = 0; i < mx_block; i += 4) {
    const ptx::pair a = ptx::multiply({x[first + i], x[first + i + 1]}, ptx::pair::both(up));
    const ptx::pair b = ptx::multiply({x[first + i + 2], x[first + i + 3]}, ptx::pair::both(up));
    packed[word + i / 4] = ptx::pack<E>(a.low, a.high, b.low, b.high);
  }
  return scale.bits;
}

/// Four scales of a row, the lowest byte that of its first 32 elements, into a tile of scales.
OCTAVO_DEVICE void store_scales(std::uint8_t* tile, int row, std::uint32_t scales) {
  *reinterpret_cast<std::uint32_t*>(tile + scale_at(row, 0)) = scales;
}

/// N consecutive elements of a row of a tensor, rounded to its type.
template <int N>
OCTAVO_DEVICE void write_row(const tensor& to, std::int64_t first, const float (&x)[N]) {
  static_assert(N % 8 == 0);
  char* const at = static_cast<char*>(to.data) + first * bytes_of(to.type);
  if (to.type == dtype::f32) {
    OCTAVO_UNROLL
    for (int i = 0; i < N; ++i) reinterpret_cast<float*>(at)[i] = x[i];
    return;
  }
  std::uint32_t words[N / 2];
  if (to.type == dtype::bf16) {
    OCTAVO_UNROLL
    for (int i = 0; i < N; i += 2) words[i / 2] = ptx::pack_bf16(x[i], x[i + 1]);
  } else {
    OCTAVO_UNROLL
    for (int i = 0; i < N; i += 2) words[i / 2] = ptx::pack_f16(x[i], x[i + 1]);
  }
  if (reinterpret_cast<std::uintptr_t>(at) % 16 == 0) {
    OCTAVO_UNROLL
    for (int i = 0; i < N / 2; i += 4) std::memcpy(__builtin_assume_aligned(at + 4 * i, 16), words + i, 16);
  } else {
    OCTAVO_UNROLL
    for (int i = 0; i < N; ++i)
      reinterpret_cast<std::uint16_t*>(at)[i] = static_cast<std::uint16_t>(words[i / 2] >> i % 2 * 16);
  }
}

/// x as a later read of the tensor will give it.
OCTAVO_DEVICE float as_stored(dtype type, float x) {
  float low = x, high = x;
  if (type == dtype::bf16) low = detail::bit_cast<float>(ptx::pack_bf16(x, x) << 16);
  if (type == dtype::f16) ptx::unpack_f16(ptx::pack_f16(x, x), low, high);
  return low;
}

/// What a NaN in V (forward) or dO (dV) does to a product with weights: it reaches its channel in the rows that give its
/// token a weight, and nothing else. Columns hold it as a marked zero, so that other rows do not meet it; which results it
/// reached is noted here, in shared memory, and written at the end.
template <int rows, int D>
struct poisoned_results {
  std::uint32_t bits[rows][D / 32];

  /// All threads of the block, before a barrier.
  OCTAVO_DEVICE void clear() {
    std::uint32_t* word = &bits[0][0];
    for (int i = ptx::thread_index(); i < rows * D / 32; i += block_threads) word[i] = 0;
  }
  /// packed: the weights of `row` over tokens [first, first + 4 W) of a tile; columns: the tile's, in any memory. Whether
  /// there was anything to note.
  template <int W>
  OCTAVO_DEVICE bool note(int row, const std::uint32_t (&packed)[W], const std::uint8_t* columns, int first,
                          const std::uint32_t* nonfinite) {
    bool noted = false;
    OCTAVO_UNROLL
    for (int w = 0; w < W; ++w) {
      const int token = first + 4 * w;
      const std::uint32_t marks = nonfinite[token / 32] >> token % 32 & 0xf;
      if (marks != 0) noted |= note_tokens(row, packed[w], columns, token, marks);
    }
    return noted;
  }
  OCTAVO_DEVICE bool holds(int row, int channel) const { return (bits[row][channel / 32] >> channel % 32 & 1) != 0; }

 private:
  OCTAVO_DEVICE bool note_tokens(int row, std::uint32_t weights, const std::uint8_t* columns, int token,
                                 std::uint32_t marks) {
    bool noted = false;
    OCTAVO_NO_UNROLL
    for (int e = 0; e < 4; ++e) {
      if ((marks >> e & 1) == 0 || (weights >> 8 * e & 0x7f) == 0) continue;
      OCTAVO_NO_UNROLL
      for (int c = 0; c < D; ++c)
        if (columns[row_image_at(token + e, c)] == nonfinite_in_columns) {
          ptx::atomic_or(&bits[row][c / 32], 1u << c % 32);
          noted = true;
        }
    }
    return noted;
  }
};

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
