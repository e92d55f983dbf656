// expect: the contracted extents of the two operands differ
// SPDX-License-Identifier: Apache-2.0
// O = P V with P over 128 keys and V over 64.
#include <octavo/backends/cpu/backend.hpp>

using cpu = octavo::backends::cpu;

void wrong(cpu::context& ctx, cpu::accum<128, 256>& o,
           cpu::operand<octavo::e4m3, octavo::side::left, octavo::image::rowwise, 128, 128>& p,
           cpu::operand<octavo::e4m3, octavo::side::right, octavo::image::columnwise, 64, 256>& v) {
  cpu::mma(ctx, o, p, v);
}
