// SPDX-License-Identifier: Apache-2.0
// How the fragment of a warpgroup's 64 rows is written to a tensor.
#pragma once

#include <octavo/backends/cuda/common/visible_tiles.hpp>
#include <octavo/backends/cuda/hopper/fragments.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hopper {

/// Writes a fragment of 64 rows: x(i) is the value of element i. Executed once a block, from instructions that no loop has
/// brought: what counts is how few they are.
template <int R>
class fragment_writer {
 public:
  /// rows: of the tensor's elements, where the thread's two rows begin (at the thread's first column), null where a row
  /// does not exist.
  OCTAVO_DEVICE fragment_writer(const tensor& to, std::int64_t first, const bool (&exists)[2])
      : to_(to), exists_{exists[0], exists[1]} {
    const std::int64_t bytes = bytes_of(to.type);
    rows_[0] = static_cast<char*>(to.data) + first * bytes;
    rows_[1] = rows_[0] + 8 * to.stride_s * bytes;
  }
  template <class Value>
  OCTAVO_DEVICE void write(Value x) const {
    switch (to_.type) {
      case dtype::bf16:
        return write_pairs([&](int i) { return ptx::pack_bf16(x(i), x(i + 1)); });
      case dtype::f16:
        return write_pairs([&](int i) { return ptx::pack_f16(x(i), x(i + 1)); });
      default:
        OCTAVO_UNROLL
        for (int i = 0; i < R; ++i)
          if (exists_[row_half(i)]) reinterpret_cast<float*>(rows_[row_half(i)])[i / 4 * 8 + i % 2] = x(i);
    }
  }

 private:
  template <class Pair>
  OCTAVO_DEVICE void write_pairs(Pair pair) const {
    const bool words =
        (reinterpret_cast<std::uintptr_t>(rows_[0]) | reinterpret_cast<std::uintptr_t>(rows_[1])) % 4 == 0;
    OCTAVO_UNROLL
    for (int i = 0; i < R; i += 2) {
      if (!exists_[row_half(i)]) continue;
      char* const at = rows_[row_half(i)] + i / 4 * 16;
      const std::uint32_t bits = pair(i);
      if (words) {
        *reinterpret_cast<std::uint32_t*>(at) = bits;
      } else {
        reinterpret_cast<std::uint16_t*>(at)[0] = static_cast<std::uint16_t>(bits);
        reinterpret_cast<std::uint16_t*>(at)[1] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
  }

  const tensor& to_;
  bool exists_[2];
  char* rows_[2];
};

}  // namespace backends::hopper
OCTAVO_END_NAMESPACE
