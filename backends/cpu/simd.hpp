// SPDX-License-Identifier: Apache-2.0
// A vector of floats as wide as the target of this compilation: the standard library's where it has one (Parallelism TS
// 2), else a short array that compilers unroll.
#pragma once

#include <octavo/backends/cpu/target.hpp>

#if __has_include(<experimental/simd>) && !defined(__CUDACC__)  // nvcc's front end does not take GCC's header
#include <experimental/simd>
#endif

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

#if defined(__cpp_lib_experimental_parallel_simd)
namespace stdx = std::experimental;
using floats = stdx::native_simd<float>;
inline floats load(const float* from) { return floats(from, stdx::element_aligned); }
inline void store(const floats& x, float* to) { x.copy_to(to, stdx::element_aligned); }
inline constexpr int width = static_cast<int>(floats::size());
#else
struct floats {
  static constexpr int lanes = 8;
  float lane[lanes] = {};
  floats() = default;
  floats(float x) {
    for (float& e : lane) e = x;
  }
  friend floats operator*(floats a, const floats& b) {
    for (int i = 0; i < lanes; ++i) a.lane[i] *= b.lane[i];
    return a;
  }
  floats& operator+=(const floats& b) {
    for (int i = 0; i < lanes; ++i) lane[i] += b.lane[i];
    return *this;
  }
};
inline floats load(const float* from) {
  floats x;
  for (int i = 0; i < floats::lanes; ++i) x.lane[i] = from[i];
  return x;
}
inline void store(const floats& x, float* to) {
  for (int i = 0; i < floats::lanes; ++i) to[i] = x.lane[i];
}
inline constexpr int width = floats::lanes;
#endif

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
