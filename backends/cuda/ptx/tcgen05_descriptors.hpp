// SPDX-License-Identifier: Apache-2.0
// What an instruction of the fifth-generation tensor cores (tcgen05) is told about its operands: addresses in tensor
// memory, matrices in shared memory (PTX ISA, tcgen05 "shared memory descriptor" and "canonical layouts") and the
// instruction itself ("instruction descriptor"). shared_descriptor and instruction_descriptor are their fields by name,
// which the simulator decodes from the bits by the same tables; shared_operand and mma_instruction are the words.
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

/// A field of a descriptor: `count` bits from bit `first` on.
template <int first, int count>
struct bit_field {
  static constexpr std::uint64_t mask = (1ull << count) - 1;
  OCTAVO_HD static constexpr std::uint64_t put(std::uint64_t value) { return (value & mask) << first; }
  OCTAVO_HD static constexpr std::uint32_t get(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> first & mask);
  }
};

/// The fields of a matrix in shared memory. Addresses and distances are bytes, multiples of 16; which distance lies along
/// which axis hangs on the layout: see shared_operand.
struct shared_descriptor {
  std::uint32_t start = 0, leading = 0, stride = 0;
  std::uint32_t constant = 1;        ///< of tcgen05
  std::uint32_t base_offset = 0;     ///< 0: patterns start at multiples of their size
  bool leading_is_absolute = false;  ///< an address and no distance
  swizzle pattern = swizzle::none;

  OCTAVO_HD constexpr std::uint64_t encode() const {
    return at_start::put(start / unit) | at_leading::put(leading / unit) | at_stride::put(stride / unit) |
           at_constant::put(constant) | at_base_offset::put(base_offset) | at_absolute::put(leading_is_absolute) |
           at_pattern::put(static_cast<std::uint32_t>(pattern));
  }
  /// Bits that are no field's are lost: encode() then gives another word.
  OCTAVO_HD static constexpr shared_descriptor decode(std::uint64_t word) {
    return {.start = at_start::get(word) * unit,
            .leading = at_leading::get(word) * unit,
            .stride = at_stride::get(word) * unit,
            .constant = at_constant::get(word),
            .base_offset = at_base_offset::get(word),
            .leading_is_absolute = at_absolute::get(word) != 0,
            .pattern = static_cast<swizzle>(at_pattern::get(word))};
  }
  friend bool operator==(const shared_descriptor&, const shared_descriptor&) = default;

 private:
  static constexpr std::uint32_t unit = 16;
  using at_start = bit_field<0, 14>;
  using at_leading = bit_field<16, 14>;
  using at_stride = bit_field<32, 14>;
  using at_constant = bit_field<46, 3>;
  using at_base_offset = bit_field<49, 3>;
  using at_absolute = bit_field<52, 1>;
  using at_pattern = bit_field<61, 3>;
};

/// A matrix in shared memory, as the instruction takes it. R is its axis that is not contracted (M of A, N of B), K the
/// contracted one; elements are bytes.
struct shared_operand {
  std::uint64_t bits;

  OCTAVO_DEVICE static shared_operand of(std::uint32_t address, int leading_bytes, int stride_bytes, swizzle s) {
    return {shared_descriptor{.start = address,
                              .leading = static_cast<std::uint32_t>(leading_bytes),
                              .stride = static_cast<std::uint32_t>(stride_bytes),
                              .pattern = s}
                .encode()};
  }

  /// K-major, swizzled: row r is row_bytes(s) consecutive bytes of K (row r / 8 of patterns that follow each other); a
  /// deeper matrix is several such slabs. `first` points at row 0 (a multiple of 8 rows of a slab).
  OCTAVO_DEVICE static shared_operand k_major(const void* first, swizzle s) {
    return of(shared_address(first), 16, 8 * row_bytes(s), s);
  }
  /// K-major, not swizzled, as `matrix` of wgmma.hpp: chunk k holds bytes [16 k, 16 k + 16) of all `rows` rows.
  OCTAVO_DEVICE static shared_operand k_major(const void* first, int rows) {
    return of(shared_address(first), 16 * rows, 128, swizzle::none);
  }
  /// R-major (the instruction transposes): for each k, row_bytes(s) consecutive elements of R; `depth` such rows of K (a
  /// multiple of 8) make a slab, and slabs follow each other along R. `first` points at k = 0 (a multiple of 8) of a slab.
  OCTAVO_DEVICE static shared_operand r_major(const void* first, swizzle s, int depth) {
    return s == swizzle::none ? of(shared_address(first), 128, 16 * depth, s)
                              : of(shared_address(first), row_bytes(s) * depth, 8 * row_bytes(s), s);
  }
  /// A tile of 128 x 4 scales, for tcgen05_copy_scales: 32 rows of 16 bytes.
  OCTAVO_DEVICE static shared_operand scale_tile(const void* first) {
    return of(shared_address(first), 16, 128, swizzle::none);
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

/// The fields of an instruction, D[M, N] from A[M, 32] and B[N, 32] of FP8; N a multiple of 16 up to 256.
struct instruction_descriptor {
  bool scaled = false;  ///< kind::mxf8f6f4, else kind::f8f6f4: of the instruction and not of the bits
  std::uint32_t sparsity_selector = 0;
  bool sparse = false, negate_a = false, negate_b = false;
  std::uint32_t a_type = 0, b_type = 0;  ///< element_code
  major a_major = major::k, b_major = major::k;
  int rows = mma_rows, columns = 0;                  ///< M and N
  std::uint32_t sum_type = 1;                        ///< of D, not scaled: 1 is FP32
  bool e8m0_scales = true;                           ///< scaled
  std::uint32_t a_scale_byte = 0, b_scale_byte = 0;  ///< scaled: which byte of its columns holds an operand's scales

  OCTAVO_HD constexpr std::uint32_t encode() const {
    const std::uint64_t common = at_selector::put(sparsity_selector) | at_sparse::put(sparse) | at_a_type::put(a_type) |
                                 at_b_type::put(b_type) | at_negate_a::put(negate_a) | at_negate_b::put(negate_b) |
                                 at_a_major::put(static_cast<std::uint32_t>(a_major)) |
                                 at_b_major::put(static_cast<std::uint32_t>(b_major)) |
                                 at_columns::put(static_cast<std::uint32_t>(columns) / column_unit);
    const auto m = static_cast<std::uint32_t>(rows);
    const std::uint64_t by_kind = scaled ? at_b_scale_byte::put(b_scale_byte) | at_e8m0::put(e8m0_scales) |
                                               at_scaled_rows::put(m / scaled_row_unit) |
                                               at_a_scale_byte::put(a_scale_byte)
                                         : at_sum_type::put(sum_type) | at_rows::put(m / row_unit);
    return static_cast<std::uint32_t>(common | by_kind);
  }
  /// As shared_descriptor::decode. What the kind has no field for is left at its default.
  OCTAVO_HD static constexpr instruction_descriptor decode(std::uint32_t word, bool scaled) {
    instruction_descriptor d{.scaled = scaled,
                             .sparsity_selector = at_selector::get(word),
                             .sparse = at_sparse::get(word) != 0,
                             .negate_a = at_negate_a::get(word) != 0,
                             .negate_b = at_negate_b::get(word) != 0,
                             .a_type = at_a_type::get(word),
                             .b_type = at_b_type::get(word),
                             .a_major = static_cast<major>(at_a_major::get(word)),
                             .b_major = static_cast<major>(at_b_major::get(word)),
                             .columns = static_cast<int>(at_columns::get(word) * column_unit)};
    if (scaled) {
      d.b_scale_byte = at_b_scale_byte::get(word), d.a_scale_byte = at_a_scale_byte::get(word);
      d.e8m0_scales = at_e8m0::get(word) != 0;
      d.rows = static_cast<int>(at_scaled_rows::get(word) * scaled_row_unit);
    } else {
      d.sum_type = at_sum_type::get(word);
      d.rows = static_cast<int>(at_rows::get(word) * row_unit);
    }
    return d;
  }
  friend bool operator==(const instruction_descriptor&, const instruction_descriptor&) = default;

 private:
  static constexpr std::uint32_t column_unit = 8, row_unit = 16, scaled_row_unit = 128;
  using at_selector = bit_field<0, 2>;
  using at_sparse = bit_field<2, 1>;
  using at_a_type = bit_field<7, 3>;
  using at_b_type = bit_field<10, 3>;
  using at_negate_a = bit_field<13, 1>;
  using at_negate_b = bit_field<14, 1>;
  using at_a_major = bit_field<15, 1>;
  using at_b_major = bit_field<16, 1>;
  using at_columns = bit_field<17, 6>;
  using at_sum_type = bit_field<4, 2>;
  using at_rows = bit_field<24, 5>;
  using at_b_scale_byte = bit_field<4, 2>;
  using at_e8m0 = bit_field<23, 1>;
  using at_scaled_rows = bit_field<27, 2>;
  using at_a_scale_byte = bit_field<29, 2>;
};

/// An instruction as it is given to the tensor cores: dense, of 128 rows, FP32 sums, E8M0 scales.
struct mma_instruction {
  std::uint32_t bits;

  template <class A, class B>
  OCTAVO_DEVICE static constexpr mma_instruction plain(int n, major a = major::k, major b = major::k) {
    return {of<A, B>(n, a, b, false).encode()};
  }
  template <class A, class B>
  OCTAVO_DEVICE static constexpr mma_instruction scaled(int n, major a = major::k, major b = major::k) {
    return {of<A, B>(n, a, b, true).encode()};
  }
  /// Of a scaled one: the bytes (0 to 3) of the scales' columns that hold the scales of this instruction's 32 elements
  /// of K.
  OCTAVO_DEVICE constexpr mma_instruction scale_bytes(int of_a, int of_b) const {
    instruction_descriptor d = instruction_descriptor::decode(bits, true);
    d.a_scale_byte = static_cast<std::uint32_t>(of_a), d.b_scale_byte = static_cast<std::uint32_t>(of_b);
    return {d.encode()};
  }

 private:
  template <class A, class B>
  OCTAVO_DEVICE static constexpr instruction_descriptor of(int n, major a, major b, bool with_scales) {
    return {.scaled = with_scales,
            .a_type = element_code<A>,
            .b_type = element_code<B>,
            .a_major = a,
            .b_major = b,
            .columns = n};
  }
};

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
