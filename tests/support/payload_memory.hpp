// SPDX-License-Identifier: Apache-2.0
// FP8 payloads with their scales in a backend's memory, sized by the table in <octavo/tensor/arguments.hpp>, so that a
// backend that writes more than the documented scales is caught.
#pragma once

#include <string_view>

#include "support/test_case.hpp"

namespace octavo_tests {

/// Bytes of each part of one tensor's payload. documents: their number if packed, else 0.
struct payload_extents {
  std::int64_t rowwise, rowwise_scale, columnwise = 0, columnwise_scale = 0;

  static payload_extents of(std::string_view recipe, const tensor_shape& t, std::int64_t documents, bool packed) {
    const auto blocks = [&](std::int64_t block) {
      return packed ? t.h * (t.s / block + documents) : t.b * t.h * ((t.s + block - 1) / block);
    };
    const std::int64_t elements = t.rows() * t.d;
    if (recipe == "token") return {elements, t.rows()};
    if (recipe == "tile") return {elements, blocks(128)};
    if (recipe == "tensor") return {elements, t.h * (packed ? documents : t.b) * std::int64_t{sizeof(float)}};
    return {elements, elements / 32, elements, blocks(32) * t.d};  // mx32
  }
};

class payload_memory {
 public:
  /// An output.
  payload_memory(const session& on, const tensor_shape& shape, octavo::dtype type, const payload_extents& size)
      : shape_(shape),
        type_(type),
        two_images_(size.columnwise > 0),
        rowwise_(on, size.rowwise),
        rowwise_scale_(on, size.rowwise_scale),
        columnwise_(on, size.columnwise),
        columnwise_scale_(on, size.columnwise_scale) {}
  /// An input.
  payload_memory(const session& on, const tensor_shape& shape, octavo::dtype type, const payload& x)
      : shape_(shape),
        type_(type),
        two_images_(!x.columnwise.empty()),
        rowwise_(on, x.rowwise),
        rowwise_scale_(on, x.rowwise_scale),
        columnwise_(on, x.columnwise),
        columnwise_scale_(on, x.columnwise_scale) {}

  octavo::quantized view() const {
    octavo::quantized out;
    out.rowwise = shape_.view(rowwise_.data(), type_);
    out.rowwise_scale = rowwise_scale_.data();
    if (!two_images_) return out;
    out.columnwise = shape_.view(columnwise_.data(), type_);
    out.columnwise_scale = columnwise_scale_.data();
    return out;
  }
  payload values() const {
    return {rowwise_.values(), rowwise_scale_.values(), columnwise_.values(), columnwise_scale_.values()};
  }
  bool unchanged() const {
    return rowwise_.unchanged() && rowwise_scale_.unchanged() && columnwise_.unchanged() &&
           columnwise_scale_.unchanged();
  }
  bool gaps_intact() const {
    return rowwise_.gaps_intact() && rowwise_scale_.gaps_intact() && columnwise_.gaps_intact() &&
           columnwise_scale_.gaps_intact();
  }

 private:
  tensor_shape shape_;
  octavo::dtype type_;
  bool two_images_;
  array_memory<std::uint8_t> rowwise_, rowwise_scale_, columnwise_, columnwise_scale_;
};

}  // namespace octavo_tests
