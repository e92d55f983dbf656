// SPDX-License-Identifier: Apache-2.0
// Arithmetic on two FP32 numbers in one instruction, which the arithmetic units have from sm_100 on.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// Two numbers, best in neighbouring registers.
struct pair {
  float low, high;
  static OCTAVO_DEVICE pair both(float x) { return {x, x}; }
};

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/pairs.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// a b + c, rounded once, for both.
OCTAVO_DEVICE pair multiply_add(pair a, pair b, pair c) {
  pair d;
  asm("{\n"
      ".reg .b64 a, b, c, d;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "mov.b64 c, {%6, %7};\n"
      "fma.rn.f32x2 d, a, b, c;\n"
      "mov.b64 {%0, %1}, d;\n"
      "}"
      : "=f"(d.low), "=f"(d.high)
      : "f"(a.low), "f"(a.high), "f"(b.low), "f"(b.high), "f"(c.low), "f"(c.high));
  return d;
}

/// a + b for both.
OCTAVO_DEVICE pair add(pair a, pair b) {
  pair d;
  asm("{\n"
      ".reg .b64 a, b, d;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "add.rn.f32x2 d, a, b;\n"
      "mov.b64 {%0, %1}, d;\n"
      "}"
      : "=f"(d.low), "=f"(d.high)
      : "f"(a.low), "f"(a.high), "f"(b.low), "f"(b.high));
  return d;
}

/// a - b for both.
OCTAVO_DEVICE pair subtract(pair a, pair b) {
  pair d;
  asm("{\n"
      ".reg .b64 a, b, d;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "sub.rn.f32x2 d, a, b;\n"
      "mov.b64 {%0, %1}, d;\n"
      "}"
      : "=f"(d.low), "=f"(d.high)
      : "f"(a.low), "f"(a.high), "f"(b.low), "f"(b.high));
  return d;
}

/// a b, rounded: never fused with an addition, for both.
OCTAVO_DEVICE pair multiply(pair a, pair b) {
  pair d;
  asm("{\n"
      ".reg .b64 a, b, d;\n"
      "mov.b64 a, {%2, %3};\n"
      "mov.b64 b, {%4, %5};\n"
      "mul.rn.f32x2 d, a, b;\n"
      "mov.b64 {%0, %1}, d;\n"
      "}"
      : "=f"(d.low), "=f"(d.high)
      : "f"(a.low), "f"(a.high), "f"(b.low), "f"(b.high));
  return d;
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
