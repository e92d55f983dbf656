// SPDX-License-Identifier: Apache-2.0
// Rounding a double to a narrower format, in one step.
//
// The encodings under numeric/ start from binary32. The reference rounds from float64 instead, so that no value is
// rounded twice, and for all formats with the same three lines: a value is a multiple of the quantum at its exponent.
#pragma once

#include <octavo/numeric/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::reference_math {

/// What rounding needs to know of a floating-point format.
struct format {
  int mantissa_bits;
  int min_exponent;  // of the smallest normal value; below it the quantum stays
  double max;
  bool saturates;  // what lies beyond max becomes max (FP8), else infinity
};

template <class T>
constexpr format format_of() {
  return {T::mantissa_bits, 1 - T::bias, T::max, sizeof(T) == 1};
}
template <>
constexpr format format_of<float>() {
  return {23, -126, std::numeric_limits<float>::max(), false};
}
/// float64 itself: nothing is rounded.
template <>
constexpr format format_of<double>() {
  return {52, -1022, std::numeric_limits<double>::max(), false};
}

constexpr format format_of(dtype type) {
  switch (type) {
    case dtype::f32:
      return format_of<float>();
    case dtype::f16:
      return format_of<fp16>();
    case dtype::bf16:
      return format_of<bf16>();
    case dtype::e4m3:
      return format_of<e4m3>();
    case dtype::e5m2:
      return format_of<e5m2>();
  }
  return format_of<double>();  // not an enumerator
}

/// 2^n for n in the range of normal doubles.
inline double power_of_two(int n) { return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52); }

/// The value of the format nearest to x, ties to even.
inline double round_to(double x, const format& f) {
  if (f.mantissa_bits == 52 || std::isnan(x)) return x;
  const double limit = f.saturates ? f.max : std::numeric_limits<double>::infinity();
  if (std::isinf(x)) return std::copysign(limit, x);
  const int exponent = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52 & 0x7ff) - 1023;
  const double quantum = power_of_two(std::max(exponent, f.min_exponent) - f.mantissa_bits);
  // At 3 * 2^51 quanta the spacing of doubles is one quantum: the addition rounds, the subtraction is exact.
  const double anchor = 0x3p51 * quantum;
  const double rounded = std::copysign(std::fabs((x + anchor) - anchor), x);
  return std::fabs(rounded) <= f.max ? rounded : std::copysign(limit, x);
}

/// Element i of an array of the given type, exact.
inline double load_element(const void* data, dtype type, std::int64_t i) {
  switch (type) {
    case dtype::f32:
      return static_cast<const float*>(data)[i];
    case dtype::f16:
      return static_cast<float>(static_cast<const fp16*>(data)[i]);
    case dtype::bf16:
      return static_cast<float>(static_cast<const bf16*>(data)[i]);
    case dtype::e4m3:
      return static_cast<float>(static_cast<const e4m3*>(data)[i]);
    case dtype::e5m2:
      return static_cast<float>(static_cast<const e5m2*>(data)[i]);
  }
  return 0;  // not an enumerator
}

/// Writes x, rounded to the array's type. After round_to the conversions to float and to the encoding are exact.
inline void store_element(void* data, dtype type, std::int64_t i, double x) {
  const float rounded = static_cast<float>(round_to(x, format_of(type)));
  switch (type) {
    case dtype::f32:
      static_cast<float*>(data)[i] = rounded;
      return;
    case dtype::f16:
      static_cast<fp16*>(data)[i] = fp16::nearest_even(rounded);
      return;
    case dtype::bf16:
      static_cast<bf16*>(data)[i] = bf16::nearest_even(rounded);
      return;
    case dtype::e4m3:
      static_cast<e4m3*>(data)[i] = e4m3::nearest_even(rounded);
      return;
    case dtype::e5m2:
      static_cast<e5m2*>(data)[i] = e5m2::nearest_even(rounded);
      return;
  }
}

}  // namespace backends::reference_math
OCTAVO_END_NAMESPACE
