// SPDX-License-Identifier: Apache-2.0
// CDNA3 (MI300A, MI300X, MI325X; gfx942) as a machine for the lane-level kernels: FNUZ matrix instructions, 64 KB of
// shared memory. README.md has the reasons for the plan.
#pragma once

#include <octavo/backends/hip/cdna3/atoms.hpp>
#include <octavo/backends/hip/common/wave.hpp>
#include <octavo/scaling/fnuz.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::cdna3 {

struct machine : hip_common::wave_machine {
  static constexpr int shared_bytes = 64 * 1024;

  template <class Recipe>
  static constexpr bool computes =
      Recipe::scale_per == recipe::granularity::tile128 || Recipe::scale_per == recipe::granularity::token;

  template <class L, class R>
  using atom = mfma_32<L, R>;

  /// Rows stay in registers, of which a lane has 512: shared memory is what is short.
  static constexpr simt::schedule plan(simt::work which, int d, recipe::granularity) {
    simt::schedule s{.row_tiles = 1, .step = 32, .stages = 2, .blocks_per_sm = 1, .rows_in_registers = true};
    switch (which) {
      case simt::work::forward:
        s.step = d <= 64 ? 64 : 32;
        s.blocks_per_sm = d <= 128 ? 2 : 1;
        break;
      case simt::work::delta_sums:
      case simt::work::dq:
        s.blocks_per_sm = d <= 128 ? 2 : 1;
        break;
      case simt::work::dkv:
        s.parts = d <= 128 ? 1 : 2;
        break;
    }
    return s;
  }

  /// A number's OCP code read as FNUZ is half the number, so half of it is rounded.
  template <class E>
  OCTAVO_DEVICE static std::uint32_t pack(float a, float b, float c, float d) {
    return amdgcn::pack_float8<fnuz_of_t<E>>(a, b, c, d, 1.0f / fnuz_scale_factor);
  }
  /// OCP codes: those of `pack`, with OCP's NaN. (A zero has no sign here.)
  template <class E>
  OCTAVO_DEVICE static std::uint32_t payload(float a, float b, float c, float d) {
    const std::uint32_t codes = pack<E>(a, b, c, d);
    const std::uint32_t non_zero = ((codes & 0x7f7f7f7f) + 0x7f7f7f7f) & 0x80808080;
    return codes - ((codes & ~non_zero & 0x80808080) >> 7) * (0x80 - E::nan_code);  // of 80 alone
  }
  template <class E>
  OCTAVO_DEVICE static void unpack(std::uint32_t word, float (&x)[4]) {
    amdgcn::unpack_float8<fnuz_of_t<E>>(word, x);
    OCTAVO_UNROLL
    for (int i = 0; i < 4; ++i) x[i] *= fnuz_scale_factor;
  }
  /// ocp_to_fnuz of four codes at once: -0 becomes 00, NaN and infinity 80.
  template <class E>
  OCTAVO_DEVICE static std::uint32_t operand_bytes(std::uint32_t word) {
    constexpr std::uint32_t magnitudes = 0x7f7f7f7f, signs = 0x80808080, ones = 0x01010101;
    // Sums of bytes below 128 stay in their bytes: bit 7 tells whether a magnitude is beyond the largest, or not zero.
    const std::uint32_t magnitude = word & magnitudes;
    const std::uint32_t non_finite = (magnitude + ones * (0x7f - E::max_code)) & signs;
    const std::uint32_t non_zero = (magnitude + magnitudes) & signs;
    const std::uint32_t dropped = non_finite - (non_finite >> 7);  // 7f in the bytes that are not finite
    return (magnitude & ~dropped) | (word & non_zero) | non_finite;
  }
  OCTAVO_DEVICE static bool is_weight(std::uint32_t byte) { return (byte & 0xff) != 0; }
};

static_assert(simt::require_machine<machine>::value);

}  // namespace backends::cdna3
OCTAVO_END_NAMESPACE
