// SPDX-License-Identifier: Apache-2.0
// A box of a tensor of bytes in global memory, as the copy engine takes it (PTX ISA, "tensors", tiled mode): the elements
// outside of the tensor are zeros; 16-byte chunks go to where the swizzle of shared memory's addresses puts them.
#pragma once

#include <octavo/config.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

struct tensor_box {
  static constexpr int most_rank = 4;

  const char* data = nullptr;
  int rank = 0;
  std::int64_t extents[most_rank] = {};
  std::int64_t strides[most_rank] = {};  ///< bytes; 1 of axis 0
  int box[most_rank] = {};
  int pattern = 16;  ///< bytes of a row of the swizzle's pattern
  std::int64_t first[most_rank] = {};
};

/// Whether the driver would make a map of it (CUDA driver API, cuTensorMapEncodeTiled), and rows of the box are rows of
/// the pattern.
inline bool is_box(const tensor_box& b) {
  if (b.data == nullptr || reinterpret_cast<std::uintptr_t>(b.data) % 16 != 0) return false;
  for (int i = 0; i < b.rank; ++i) {
    if (b.extents[i] < 1 || b.extents[i] > std::int64_t{1} << 32 || b.box[i] < 1 || b.box[i] > 256) return false;
    if (i > 0 && (b.strides[i] % 16 != 0 || b.strides[i] <= 0 || b.strides[i] >= std::int64_t{1} << 40)) return false;
  }
  return b.box[0] % 16 == 0 && (b.pattern == 16 || b.box[0] == b.pattern);
}

inline int bytes_of(const tensor_box& b) {
  int bytes = 1;
  for (int i = 0; i < b.rank; ++i) bytes *= b.box[i];
  return bytes;
}

/// f(row of the box, where the first of its bytes that is in the tensor stands, how many are); rows count axis 1 fastest.
template <class F>
void for_rows(const tensor_box& b, F f) {
  const int rows = bytes_of(b) / b.box[0];
  const std::int64_t begin = std::max<std::int64_t>(b.first[0], 0);
  const std::int64_t end = std::min(b.first[0] + b.box[0], b.extents[0]);
  for (int row = 0; row < rows; ++row) {
    const char* at = b.data + begin;
    bool inside = true;
    for (int i = 1, rest = row; i < b.rank; rest /= b.box[i], ++i) {
      const std::int64_t x = b.first[i] + rest % b.box[i];
      inside = inside && x >= 0 && x < b.extents[i];
      at += x * b.strides[i];
    }
    f(row, at, inside && end > begin ? static_cast<int>(end - begin) : 0);
  }
}

/// Writes the box to `to`, which stands at a multiple of the pattern's 8 rows.
inline void gather(const tensor_box& b, char* to) {
  const int before = static_cast<int>(std::clamp<std::int64_t>(-b.first[0], 0, b.box[0]));
  for_rows(b, [&](int row, const char* at, int valid) {
    char bytes[256] = {};
    if (valid > 0) std::memcpy(bytes + before, at, static_cast<std::size_t>(valid));
    for (int i = 0; i < b.box[0]; i += 16) {
      const int linear = row * b.box[0] + i;
      std::memcpy(to + (linear ^ ((linear >> 7 & (b.pattern / 16 - 1)) << 4)), bytes + i, 16);
    }
  });
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
