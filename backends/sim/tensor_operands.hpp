// SPDX-License-Identifier: Apache-2.0
// Operands of tcgen05 instructions as the bits of their descriptors say (PTX ISA, tcgen05 "shared memory descriptor",
// "canonical layouts", "instruction descriptor"). The fields are those of backends/cuda/ptx, whose places in the words a
// test holds to the ISA's tables; where the bytes of a matrix stand is written here once more.
#pragma once

#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <string>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

enum class fp8 { e4m3 = 0, e5m2 = 1 };

/// What an instruction descriptor says of a product, where all of it is modelled.
inline ptx::instruction_descriptor decode_instruction(std::uint32_t bits, bool scaled, const site& where) {
  const auto d = ptx::instruction_descriptor::decode(bits, scaled);
  const auto reject = [&](const char* what) {
    fault(where, std::string("gives an instruction descriptor ") + what +
                     " for kind::" + (scaled ? "mxf8f6f4" : "f8f6f4") + " (bits " + std::to_string(bits) + ")");
  };
  if (d.sparse || d.sparsity_selector != 0) reject("of a sparse product, which is not modelled");
  if (d.negate_a || d.negate_b) reject("that negates an operand, which is not modelled");
  if (d.a_type > 1 || d.b_type > 1) reject("of element types other than E4M3 and E5M2, which are not modelled");
  if (d.encode() != bits) reject("with a reserved bit");
  if (!d.e8m0_scales) reject("whose scales are not E8M0");
  if (d.sum_type != 1) reject("whose sums are not FP32");
  if (d.rows != ptx::mma_rows) reject("of other than 128 rows of one block, which is not modelled");
  if (d.columns < 16 || d.columns > 256 || d.columns % 16 != 0)
    reject("whose N is not a multiple of 16 from 16 to 256");
  return d;
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
  const auto given = ptx::shared_descriptor::decode(bits);
  const auto reject = [&](const std::string& what) {
    fault(where, std::string("gives a descriptor of ") + name + " " + what);
  };
  if (given.encode() != bits) reject("with a reserved bit");
  if (given.constant != 1) reject("whose bits 46 to 48 are not 1, as tcgen05 demands");
  if (given.base_offset != 0) reject("with a base offset, which is not modelled");
  if (given.leading_is_absolute) reject("with an absolute leading address, which is not modelled");
  const auto code = static_cast<std::uint32_t>(given.pattern);
  if (code == 1) reject("swizzled by 32-byte atoms, which is not modelled");
  if (code % 2 != 0) reject("with swizzle " + std::to_string(code) + ", which is invalid");
  const int pattern = ptx::row_bytes(given.pattern);
  const decoded_operand d{given.start, given.leading, given.stride, pattern, rows, transposed, depth_chunks};
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
