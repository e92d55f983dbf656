// SPDX-License-Identifier: Apache-2.0
// Writes a lane's results to a tensor. Executed once a block, from instructions that no loop has brought: what counts is
// how few they are.
#pragma once

#include <octavo/backends/simt/fragments.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Writes a fragment of rows x N channels: x(i) is the value of element i. Elements 2 i and 2 i + 1 are neighbours.
template <class M, class Shape>
class result_writer {
 public:
  /// first: element of the tensor where row 0 of the block begins; rows: that exist; channels: of the tensor, the first of
  /// them that the fragment holds being first_channel.
  template <class Place>
  OCTAVO_DEVICE result_writer(const tensor& to, std::int64_t first, const Place& place, int rows, int channels,
                              int first_channel = 0)
      : to_(to), channels_(channels - first_channel - place.column) {
    const std::int64_t bytes = bytes_of(to.type);
    OCTAVO_UNROLL
    for (int r = 0; r < Shape::rows; ++r)
      rows_[r] = place.row(r) >= rows ? nullptr
                                      : static_cast<char*>(to.data) +
                                            (first + place.row(r) * to.stride_s + first_channel + place.column) * bytes;
  }
  template <class Value>
  OCTAVO_DEVICE void write(Value x) const {
    switch (to_.type) {
      case dtype::bf16:
        return write_pairs([&](int i) { return M::pack_bf16(x(i), x(i + 1)); });
      case dtype::f16:
        return write_pairs([&](int i) { return M::pack_f16(x(i), x(i + 1)); });
      default:
        OCTAVO_UNROLL
        for (int i = 0; i < Shape::elements; ++i)
          if (char* row = rows_[Shape::row(i)]; row != nullptr && Shape::column(i) < channels_)
            reinterpret_cast<float*>(row)[Shape::column(i)] = x(i);
    }
  }

 private:
  template <class Pair>
  OCTAVO_DEVICE void write_pairs(Pair pair) const {
    OCTAVO_UNROLL
    for (int i = 0; i < Shape::elements; i += 2) {
      char* const row = rows_[Shape::row(i)];
      if (row == nullptr || Shape::column(i) >= channels_) continue;
      char* const at = row + 2 * Shape::column(i);
      const std::uint32_t bits = pair(i);
      if (reinterpret_cast<std::uintptr_t>(row) % 4 == 0) {
        *reinterpret_cast<std::uint32_t*>(at) = bits;
      } else {
        reinterpret_cast<std::uint16_t*>(at)[0] = static_cast<std::uint16_t>(bits);
        reinterpret_cast<std::uint16_t*>(at)[1] = static_cast<std::uint16_t>(bits >> 16);
      }
    }
  }

  const tensor& to_;
  int channels_;  ///< from the lane's column on
  char* rows_[Shape::rows];
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
