// SPDX-License-Identifier: Apache-2.0
// OCP FP8 payloads on hardware that reads FNUZ (CDNA3, MI300). The bias of a FNUZ format is one higher, so the same
// byte means half as much: tensors are quantised by OCP rules once, the bytes pass through almost untouched, and each
// operand's scale is doubled. The numerics then agree with those of other vendors to the last bit.
//
// Only codes that mean different things are mapped: 80, which is -0 in OCP and NaN in FNUZ, becomes 00; OCP's NaNs and
// infinities (E4M3 7F, FF; E5M2 7C-7F, FC-FF), which would read as finite numbers, become 80.
#pragma once

#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e4m3fnuz.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e5m2fnuz.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

// The FNUZ format that shares its codes with an OCP one.
template <class Ocp>
struct fnuz_of;
template <>
struct fnuz_of<e4m3> {
  using type = e4m3fnuz;
};
template <>
struct fnuz_of<e5m2> {
  using type = e5m2fnuz;
};
template <class Ocp>
using fnuz_of_t = typename fnuz_of<Ocp>::type;

// What an OCP value is worth over the same byte read as FNUZ: 2^(bias difference). Each operand's scale grows by it.
inline constexpr int fnuz_scale_factor = 2;
static_assert(e4m3fnuz::bias - e4m3::bias == 1 && e5m2fnuz::bias - e5m2::bias == 1);

// The FNUZ byte of an OCP byte: fnuz_scale_factor * float(FNUZ) == float(OCP) for every finite OCP code, and NaN for
// its NaNs and infinities. The sign of zero is lost.
template <class Ocp>
OCTAVO_HD constexpr std::uint8_t ocp_to_fnuz(std::uint8_t code) {
  constexpr std::uint8_t nan = fnuz_of_t<Ocp>::nan_code;
  const bool is_finite = (code & 0x7f) <= Ocp::max_code;
  const bool is_negative_zero = code == 0x80;
  return !is_finite ? nan : is_negative_zero ? std::uint8_t{0} : code;
}

// The way back, for payloads that a FNUZ device wrote. Exact for every code in the image of ocp_to_fnuz. Its few
// largest values have no OCP counterpart and come out as OCP's NaN or infinity, so a kernel that makes payloads (P and
// dS) clamps to Ocp::max / fnuz_scale_factor, which is 224 for E4M3, before it converts.
template <class Ocp>
OCTAVO_HD constexpr std::uint8_t fnuz_to_ocp(std::uint8_t code) {
  return code == fnuz_of_t<Ocp>::nan_code ? Ocp::nan_code : code;
}

OCTAVO_END_NAMESPACE
