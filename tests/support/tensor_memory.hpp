// SPDX-License-Identifier: Apache-2.0
// Tensors [b, s, h, d] and plain arrays in a backend's memory, filled from and read back as floats.
#pragma once

#include <octavo/scaling/quantize.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "support/device_memory.hpp"

namespace octavo_tests {

using floats = std::vector<float>;

/// How a tensor's rows of d elements lie in memory. padded leaves a gap after every row, which nobody may touch.
enum class layout { tokens_first, heads_first, padded };

/// Extents of a tensor; a packed one has b = 1 and its total as s.
struct tensor_shape {
  std::int64_t b, s, h, d;
  layout order = layout::tokens_first;

  std::int64_t rows() const { return b * s * h; }
  std::int64_t pitch() const { return d + (order == layout::padded ? gap : 0); }
  std::int64_t elements() const { return rows() * pitch(); }
  octavo::tensor view(void* data, octavo::dtype type) const {
    octavo::tensor t = octavo::contiguous(data, type, s, h, pitch());
    if (order == layout::heads_first) t.stride_s = d, t.stride_h = s * d;
    return t;
  }
  /// First element in memory of the row that stands at `row` of [b, s, h].
  std::int64_t row_start(std::int64_t row) const {
    const octavo::tensor t = view(nullptr, octavo::dtype::f32);
    return row / (s * h) * t.stride_b + row / h % s * t.stride_s + row % h * t.stride_h;
  }

 private:
  static constexpr std::int64_t gap = 16;
};

/// A tensor of one of the element types. Its values go in and come out in the order [b, s, h, d], whatever the layout.
class tensor_memory {
 public:
  /// An input. Values are rounded to the type.
  tensor_memory(const session& on, octavo::dtype type, const tensor_shape& shape, std::span<const float> values)
      : shape_(shape), type_(type), memory_(on, image(type, shape, values)) {}
  /// An output: NaN.
  tensor_memory(const session& on, octavo::dtype type, const tensor_shape& shape)
      : shape_(shape), type_(type), memory_(on, image_size(type, shape)) {}

  octavo::tensor view() const { return shape_.view(memory_.data(), type_); }

  floats values() const {
    const bytes now = memory_.fetch();
    const octavo::const_tensor host = shape_.view(const_cast<std::byte*>(now.data()), type_);
    floats out(static_cast<std::size_t>(shape_.rows() * shape_.d));
    for (std::int64_t row = 0; row < shape_.rows(); ++row)
      octavo::read_elements(host, shape_.row_start(row), static_cast<int>(shape_.d), out.data() + row * shape_.d);
    return out;
  }
  bool unchanged() const {
    return memory_.intact([](std::size_t) { return false; });
  }
  /// Whether nothing but elements was written.
  bool gaps_intact() const {
    const auto pitch = static_cast<std::size_t>(shape_.pitch() * octavo::bytes_of(type_));
    const auto row = static_cast<std::size_t>(shape_.d * octavo::bytes_of(type_));
    return memory_.intact([=](std::size_t offset) { return offset % pitch < row; });
  }

 private:
  static std::size_t image_size(octavo::dtype type, const tensor_shape& shape) {
    return static_cast<std::size_t>(shape.elements() * octavo::bytes_of(type));
  }
  static bytes image(octavo::dtype type, const tensor_shape& shape, std::span<const float> values) {
    if (static_cast<std::int64_t>(values.size()) != shape.rows() * shape.d)
      throw std::runtime_error("a test case's values do not fit its problem");
    bytes out(image_size(type, shape), poison);
    const octavo::tensor host = shape.view(out.data(), type);
    for (std::int64_t row = 0; row < shape.rows(); ++row)
      octavo::write_elements(host, shape.row_start(row), static_cast<int>(shape.d), values.data() + row * shape.d);
    return out;
  }

  tensor_shape shape_;
  octavo::dtype type_;
  device_memory memory_;
};

/// A contiguous array: row statistics, sinks, offsets, scales, payloads.
template <class T>
class array_memory {
 public:
  array_memory(const session& on, const std::vector<T>& values) : memory_(on, image(values)) {}
  /// Poison: NaN for floats.
  array_memory(const session& on, std::int64_t count) : memory_(on, static_cast<std::size_t>(count) * sizeof(T)) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  std::vector<T> values() const {
    const bytes now = memory_.fetch();
    std::vector<T> out(now.size() / sizeof(T));
    if (!now.empty()) std::memcpy(out.data(), now.data(), now.size());
    return out;
  }
  bool unchanged() const {
    return memory_.intact([](std::size_t) { return false; });
  }
  bool gaps_intact() const {
    return memory_.intact([](std::size_t) { return true; });
  }

 private:
  static bytes image(const std::vector<T>& values) {
    bytes out(values.size() * sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  device_memory memory_;
};

}  // namespace octavo_tests
