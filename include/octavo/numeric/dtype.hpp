// SPDX-License-Identifier: Apache-2.0
// Element types as run-time values, for views and problems that carry their type beside their extents.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/fp16.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

enum class dtype : std::uint8_t { f32, f16, bf16, e4m3, e5m2 };

// Bytes per element.
OCTAVO_HD constexpr int bytes_of(dtype type) {
  switch (type) {
    case dtype::f32:
      return 4;
    case dtype::f16:
    case dtype::bf16:
      return 2;
    case dtype::e4m3:
    case dtype::e5m2:
      return 1;
  }
  return 0;  // not an enumerator
}

OCTAVO_HD constexpr const char* name_of(dtype type) {
  switch (type) {
    case dtype::f32:
      return "f32";
    case dtype::f16:
      return "f16";
    case dtype::bf16:
      return "bf16";
    case dtype::e4m3:
      return "e4m3";
    case dtype::e5m2:
      return "e5m2";
  }
  return "unknown";  // not an enumerator
}

// dtype_of<T>::value is the enumerator of an element type; there is none for other types, the FNUZ formats among them:
// they exist inside a backend only, and payloads at the interface are OCP.
template <class T>
struct dtype_of;

template <>
struct dtype_of<float> {
  static constexpr dtype value = dtype::f32;
};
template <>
struct dtype_of<fp16> {
  static constexpr dtype value = dtype::f16;
};
template <>
struct dtype_of<bf16> {
  static constexpr dtype value = dtype::bf16;
};
template <>
struct dtype_of<e4m3> {
  static constexpr dtype value = dtype::e4m3;
};
template <>
struct dtype_of<e5m2> {
  static constexpr dtype value = dtype::e5m2;
};

template <class T>
inline constexpr dtype dtype_of_v = dtype_of<T>::value;

OCTAVO_END_NAMESPACE
