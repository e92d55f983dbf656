// expect: contracts rows, so the right one must be columnwise too
// SPDX-License-Identifier: Apache-2.0
// dV = P^T dO with the row-wise image of dO: its scales run along the channels, but the product contracts queries.
#include <octavo/backends/cpu/backend.hpp>

using cpu = octavo::backends::cpu;

void wrong(cpu::context& ctx, cpu::accum<128, 256>& dv,
           cpu::operand<octavo::e4m3, octavo::side::left, octavo::image::columnwise, 128, 128>& p,
           cpu::operand<octavo::e4m3, octavo::side::right, octavo::image::rowwise, 128, 256>& dout) {
  cpu::mma(ctx, dv, p, dout);
}
