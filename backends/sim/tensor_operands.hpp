// SPDX-License-Identifier: Apache-2.0
// Operands of tcgen05 instructions as the bits of their descriptors say (PTX ISA, tcgen05 "shared memory descriptor",
// "canonical layouts", "instruction descriptor"). Nothing here knows how backends/cuda/ptx puts the bits together.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

enum class fp8 { e4m3 = 0, e5m2 = 1 };

/// What an instruction descriptor says of a product.
struct decoded_instruction {
  int columns;
  fp8 a, b;
  bool a_transposed, b_transposed;  ///< the axis that is not contracted is consecutive
  int a_scale_byte, b_scale_byte;
};

inline decoded_instruction decode_instruction(std::uint32_t bits, bool scaled, const site& where) {
  const auto field = [&](int at, int size) { return static_cast<int>(bits >> at & ((1u << size) - 1)); };
  const auto reject = [&](const char* what) {
    fault(where, std::string("gives an instruction descriptor ") + what +
                     " for kind::" + (scaled ? "mxf8f6f4" : "f8f6f4") + " (bits " + std::to_string(bits) + ")");
  };
  if (field(0, 3) != 0) reject("of a sparse product, which is not modelled");
  if (field(13, 2) != 0) reject("that negates an operand, which is not modelled");
  if (field(7, 3) > 1 || field(10, 3) > 1) reject("of element types other than E4M3 and E5M2, which are not modelled");
  if (scaled) {
    if (field(3, 1) != 0 || field(6, 1) != 0 || field(24, 3) != 0 || field(31, 1) != 0) reject("with a reserved bit");
    if (field(23, 1) != 1) reject("whose scales are not E8M0");
    if (field(27, 2) != 1) reject("of other than 128 rows (of one block)");
  } else {
    if (field(3, 1) != 0 || field(6, 1) != 0 || field(23, 1) != 0 || field(29, 3) != 0) reject("with a reserved bit");
    if (field(4, 2) != 1) reject("whose sums are not FP32");
    if (field(24, 5) != 8) reject("of other than 128 rows, which is not modelled");
  }
  const int columns = field(17, 6) * 8;
  if (columns < 16 || columns > 256 || columns % 16 != 0) reject("whose N is not a multiple of 16 from 16 to 256");
  return {columns,           static_cast<fp8>(field(7, 3)), static_cast<fp8>(field(10, 3)), field(15, 1) != 0,
          field(16, 1) != 0, scaled ? field(29, 2) : 0,     scaled ? field(4, 2) : 0};
}

/// A matrix in shared memory: rows (its axis that is not contracted) x 32 elements of K.
struct decoded_operand {
  std::uint32_t start, leading, stride;  ///< bytes
  int pattern;                           ///< bytes of a row of the swizzle's pattern; 16 without
  int rows;
  bool transposed;
  int depth_chunks = 2;  ///< 16-byte chunks of K, where K-major

  std::uint32_t swizzled(std::uint32_t address) const {
    const std::uint32_t chunks = static_cast<std::uint32_t>(pattern) / 16 - 1;
    return address ^ (address >> 7 & chunks) << 4;
  }
  /// Address of 16 bytes: K-major, bytes 16 i of row `line`; transposed, rows 16 i of depth `line`.
  std::uint32_t chunk(int line, int i) const {
    const auto l = static_cast<std::uint32_t>(line), c = static_cast<std::uint32_t>(i);
    const auto width = static_cast<std::uint32_t>(pattern);
    if (pattern == 16) {  // core matrices of 8 x 16 bytes; leading and stride change places
      const std::uint32_t along_chunks = transposed ? stride : leading, along_lines = transposed ? leading : stride;
      return start + l / 8 * along_lines + l % 8 * 16 + c * along_chunks;
    }
    const std::uint32_t slab = transposed ? c * 16 / width * leading + c * 16 % width : c * 16;
    return swizzled(start + l / 8 * stride + l % 8 * width + slab);
  }
  int lines() const { return transposed ? 32 : rows; }
  int chunks() const { return transposed ? rows / 16 : depth_chunks; }

  /// f(line, chunk, offset in the block's shared memory) for all 16-byte chunks.
  template <class F>
  void for_chunks(F f) const {
    for (int line = 0; line < lines(); ++line)
      for (int i = 0; i < chunks(); ++i) f(line, i, chunk(line, i) - shared_base);
  }
};

inline decoded_operand decode_operand(const block& home, std::uint64_t bits, int rows, bool transposed,
                                      const char* name, const site& where, int depth_chunks = 2) {
  const auto field = [&](int at, int size) { return static_cast<std::uint32_t>(bits >> at & ((1ull << size) - 1)); };
  const auto reject = [&](const std::string& what) {
    fault(where, std::string("gives a descriptor of ") + name + " " + what);
  };
  if (field(14, 2) != 0 || field(30, 2) != 0 || field(53, 8) != 0) reject("with a reserved bit");
  if (field(46, 3) != 1) reject("whose bits 46 to 48 are not 1, as tcgen05 demands");
  if (field(49, 3) != 0) reject("with a base offset, which is not modelled");
  if (field(52, 1) != 0) reject("with an absolute leading address, which is not modelled");
  int pattern = 0;
  switch (field(61, 3)) {
    case 0:
      pattern = 16;
      break;
    case 2:
      pattern = 128;
      break;
    case 4:
      pattern = 64;
      break;
    case 6:
      pattern = 32;
      break;
    case 1:
      reject("swizzled by 32-byte atoms, which is not modelled");
      break;
    default:
      reject("with swizzle " + std::to_string(field(61, 3)) + ", which is invalid");
  }
  const decoded_operand d{field(0, 14) << 4, field(16, 14) << 4, field(32, 14) << 4, pattern, rows,
                          transposed,        depth_chunks};
  if (pattern > 16) {
    const std::uint32_t in_row = d.start % static_cast<std::uint32_t>(pattern);
    const auto used = static_cast<std::uint32_t>(transposed ? rows : 32);
    if (d.start / static_cast<std::uint32_t>(pattern) % 8 != 0)
      reject("that starts in the middle of a swizzle pattern (" + std::to_string(8 * pattern) + " bytes), at offset " +
             std::to_string(d.start - shared_base));
    if (in_row + used > static_cast<std::uint32_t>(pattern) && (in_row != 0 || !transposed))
      reject("that reaches from byte " + std::to_string(in_row) + " past the end of a row of " +
             std::to_string(pattern) + " bytes");
  }
  d.for_chunks([&](int line, int i, std::uint32_t at) {
    if (at > static_cast<std::uint32_t>(home.shared_bytes) || at + 16 > static_cast<std::uint32_t>(home.shared_bytes))
      reject("that reaches outside of shared memory: line " + std::to_string(line) + ", chunk " + std::to_string(i) +
             " at offset " + std::to_string(static_cast<std::int32_t>(at)) + " of " +
             std::to_string(home.shared_bytes) + " bytes");
  });
  return d;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
