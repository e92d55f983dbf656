// SPDX-License-Identifier: Apache-2.0
// What an instruction of the fifth-generation tensor cores (tcgen05) is told about its operands: addresses in tensor
// memory, matrices in shared memory (PTX ISA, tcgen05 "shared memory descriptor" and "canonical layouts") and the
// instruction itself ("instruction descriptor"). Each is a word of bits with constructors that name its fields.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline constexpr int tensor_lanes = 128, tensor_columns = 512;  ///< of 32 bits each: the tensor memory of a block
inline constexpr int mma_rows = 128, mma_depth = 32;            ///< M and K (FP8 elements) of one tcgen05 product
inline constexpr int scale_tile_bytes = 512;  ///< 128 rows x 4 E8M0 scales in the 128x4 layout (scaling/swizzle.hpp)
inline constexpr int scale_tile_columns = 4;  ///< that such a tile takes in tensor memory

/// A place in tensor memory: lane in the upper half, column in the lower.
struct tensor_address {
  std::uint32_t bits;

  OCTAVO_DEVICE tensor_address column(int n) const { return {bits + static_cast<std::uint32_t>(n)}; }
  OCTAVO_DEVICE tensor_address lane(int n) const { return {bits + (static_cast<std::uint32_t>(n) << 16)}; }
  /// Where warp w of the block may load and store: lanes 32 (w % 4) to 32 (w % 4) + 31.
  OCTAVO_DEVICE tensor_address of_warp(int w) const { return lane(w % 4 * 32); }
};

/// How 16-byte chunks are exchanged within a pattern of 8 rows: chunk c of row r of a pattern stands at c ^ (r % 8) for
/// rows of 128 bytes, c ^ (r / 2 % 4) for 64, c ^ (r / 4 % 2) for 32. It is a function of the address alone: bits 4 to 6
/// are XORed with bits 7 to 9 (64 bytes: 4 to 5 with 7 to 8; 32 bytes: 4 with 7), so patterns start at multiples of 8
/// rows' bytes. The values are those of the descriptor's field.
enum class swizzle : std::uint32_t { none = 0, bytes_128 = 2, bytes_64 = 4, bytes_32 = 6 };

/// Bytes of a row of the pattern.
OCTAVO_HD constexpr int row_bytes(swizzle s) {
  return s == swizzle::bytes_128 ? 128 : s == swizzle::bytes_64 ? 64 : s == swizzle::bytes_32 ? 32 : 16;
}

/// Byte offset, from a multiple of 8 rows, of byte b of row r of a pattern.
OCTAVO_HD constexpr int swizzled_offset(swizzle s, int r, int b) {
  const int at = r * row_bytes(s) + b;
  return s == swizzle::none ? at : at ^ ((at >> 7 & (row_bytes(s) / 16 - 1)) << 4);
}

/// A matrix in shared memory. R is its axis that is not contracted (M of A, N of B), K the contracted one; elements are
/// bytes. Bits: 0-13 address / 16; 16-29 leading offset / 16; 32-45 stride offset / 16; 46-48 the constant 1; 49-51 base
/// offset (0: patterns start at multiples of their size); 52 leading offset is absolute (not used); 61-63 swizzle.
struct shared_operand {
  std::uint64_t bits;

  OCTAVO_DEVICE static shared_operand encode(std::uint32_t address, int leading_bytes, int stride_bytes, swizzle s) {
    return {static_cast<std::uint64_t>(address >> 4 & 0x3fff) |
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(leading_bytes) >> 4 & 0x3fff) << 16 |
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(stride_bytes) >> 4 & 0x3fff) << 32 | 1ull << 46 |
            static_cast<std::uint64_t>(s) << 61};
  }

  /// K-major, swizzled: row r is row_bytes(s) consecutive bytes of K (row r / 8 of patterns that follow each other); a
  /// deeper matrix is several such slabs. `first` points at row 0 (a multiple of 8 rows of a slab).
  OCTAVO_DEVICE static shared_operand k_major(const void* first, swizzle s) {
    return encode(shared_address(first), 16, 8 * row_bytes(s), s);
  }
  /// K-major, not swizzled, as `matrix` of wgmma.hpp: chunk k holds bytes [16 k, 16 k + 16) of all `rows` rows.
  OCTAVO_DEVICE static shared_operand k_major(const void* first, int rows) {
    return encode(shared_address(first), 16 * rows, 128, swizzle::none);
  }
  /// R-major (the instruction transposes): for each k, row_bytes(s) consecutive elements of R; `depth` such rows of K (a
  /// multiple of 8) make a slab, and slabs follow each other along R. `first` points at k = 0 (a multiple of 8) of a slab.
  OCTAVO_DEVICE static shared_operand r_major(const void* first, swizzle s, int depth) {
    return s == swizzle::none ? encode(shared_address(first), 128, 16 * depth, s)
                              : encode(shared_address(first), row_bytes(s) * depth, 8 * row_bytes(s), s);
  }
  /// A tile of 128 x 4 scales, for tcgen05_copy_scales: 32 rows of 16 bytes.
  OCTAVO_DEVICE static shared_operand scale_tile(const void* first) {
    return encode(shared_address(first), 16, 128, swizzle::none);
  }

  /// The same matrix from `bytes` (a multiple of 16) further on. Along K: a K-major swizzled one advances by mma_depth
  /// bytes within a row and then to the next slab, one without swizzle by 2 chunks (32 rows bytes), an R-major one by
  /// mma_depth rows (mma_depth row_bytes(s) bytes).
  OCTAVO_DEVICE shared_operand advanced(int bytes) const {
    return {(bits & ~0x3fffull) | ((bits + static_cast<std::uint32_t>(bytes >> 4)) & 0x3fff)};
  }
};

/// Which axis of an operand is consecutive in shared memory.
enum class major : std::uint32_t { k = 0, r = 1 };

/// The codes of element types in an instruction descriptor.
template <class E>
inline constexpr std::uint32_t element_code = 0;
template <>
inline constexpr std::uint32_t element_code<e5m2> = 1;

/// D[128, N] of FP32 from A[128, 32] and B[N, 32] of FP8, N a multiple of 16 up to 256.
/// kind::f8f6f4: bits 4-5 type of D (1: FP32), 7-9 and 10-12 types of A and B (0: E4M3, 1: E5M2), 15 and 16 A and B are
/// R-major, 17-22 N / 8, 24-28 M / 16.
/// kind::mxf8f6f4: the same, but 4-5 which byte of its columns holds B's scales, 23 type of scales (1: E8M0), 27-28
/// M / 128, 29-30 which byte holds A's scales.
struct mma_instruction {
  std::uint32_t bits;

  template <class A, class B>
  OCTAVO_DEVICE static constexpr mma_instruction plain(int n, major a = major::k, major b = major::k) {
    return {1u << 4 | common<A, B>(n, a, b)};
  }
  template <class A, class B>
  OCTAVO_DEVICE static constexpr mma_instruction scaled(int n, major a = major::k, major b = major::k) {
    return {1u << 23 | common<A, B>(n, a, b)};
  }
  /// The bytes (0 to 3) of the scales' columns that hold the scales of this instruction's 32 elements of K.
  OCTAVO_DEVICE constexpr mma_instruction scale_bytes(int of_a, int of_b) const {
    return {(bits & ~(3u << 4 | 3u << 29)) | static_cast<std::uint32_t>(of_b) << 4 |
            static_cast<std::uint32_t>(of_a) << 29};
  }

 private:
  template <class A, class B>
  OCTAVO_DEVICE static constexpr std::uint32_t common(int n, major a, major b) {
    return element_code<A> << 7 | element_code<B> << 10 | static_cast<std::uint32_t>(a) << 15 |
           static_cast<std::uint32_t>(b) << 16 | static_cast<std::uint32_t>(n / 8) << 17 |
           static_cast<std::uint32_t>(mma_rows / 16) << 24;
  }
};

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
