// SPDX-License-Identifier: Apache-2.0
// A tensor as the public API takes it: a pointer, an element type known at run time, and strides.
//
// Logical shape [b, s, h, d] (or packed documents, [total, h, d]); the stride of d is one element. A stride of 0 over
// b or s (a broadcast) is allowed for inputs. Grouped-query attention needs no stride: kv head = query head / group.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/dtype.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

/// Pointer, element type and strides (in elements) of a tensor [b, s, h, d] that is read. Does not own. An absent
/// tensor has data == nullptr.
struct const_tensor {
  const void* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t stride_b = 0;  ///< from batch to batch; not read for packed documents
  std::int64_t stride_s = 0;  ///< from token to token
  std::int64_t stride_h = 0;  ///< from head to head

  OCTAVO_HD constexpr explicit operator bool() const { return data != nullptr; }
};

/// The same of one that is written; what can be written can be read.
struct tensor {
  void* data = nullptr;
  dtype type = dtype::f32;
  std::int64_t stride_b = 0, stride_s = 0, stride_h = 0;

  OCTAVO_HD constexpr explicit operator bool() const { return data != nullptr; }
  OCTAVO_HD constexpr operator const_tensor() const { return {data, type, stride_b, stride_s, stride_h}; }
};

/// The tensor over contiguous memory [b, s, h, d] (or, for packed documents, [s, h, d] with s the total).
/// T is float, fp16, bf16 or an FP8 type.
template <class T>
constexpr tensor contiguous(T* data, std::int64_t s, std::int64_t h, std::int64_t d) {
  return {data, dtype_of<T>::value, s * h * d, h * d, d};
}
template <class T>
constexpr const_tensor contiguous(const T* data, std::int64_t s, std::int64_t h, std::int64_t d) {
  return {data, dtype_of<T>::value, s * h * d, h * d, d};
}

/// The same, with the element type known only at run time.
constexpr tensor contiguous(void* data, dtype type, std::int64_t s, std::int64_t h, std::int64_t d) {
  return {data, type, s * h * d, h * d, d};
}
constexpr const_tensor contiguous(const void* data, dtype type, std::int64_t s, std::int64_t h, std::int64_t d) {
  return {data, type, s * h * d, h * d, d};
}

/// Cumulative offsets of packed documents: int32 or int64 [n + 1], from 0, non-decreasing, last <= total.
/// They may live on a device: the library never reads them on the host, so the caller guarantees what this line says.
struct offsets {
  const void* data = nullptr;
  bool wide = false;  ///< int64 instead of int32

  OCTAVO_HD constexpr explicit operator bool() const { return data != nullptr; }
  OCTAVO_HD std::int64_t operator[](std::int64_t i) const {
    return wide ? static_cast<const std::int64_t*>(data)[i] : static_cast<const std::int32_t*>(data)[i];
  }
};
constexpr offsets offsets_of(const std::int32_t* data) { return {data, false}; }
constexpr offsets offsets_of(const std::int64_t* data) { return {data, true}; }

OCTAVO_END_NAMESPACE
