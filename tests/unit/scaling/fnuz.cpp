// SPDX-License-Identifier: Apache-2.0
#include <octavo/scaling/fnuz.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>

using octavo::e4m3;
using octavo::e5m2;
using octavo::fnuz_of_t;
using octavo::fnuz_scale_factor;
using octavo::fnuz_to_ocp;
using octavo::ocp_to_fnuz;

static_assert(ocp_to_fnuz<e4m3>(0x80) == 0x00 && ocp_to_fnuz<e4m3>(0x7f) == 0x80 && ocp_to_fnuz<e4m3>(0xff) == 0x80);
static_assert(ocp_to_fnuz<e5m2>(0x7c) == 0x80 && ocp_to_fnuz<e5m2>(0xfc) == 0x80 && ocp_to_fnuz<e5m2>(0x7b) == 0x7b);

TEST_CASE_TEMPLATE("an OCP payload read as FNUZ is half its value, code by code", Ocp, e4m3, e5m2) {
  using fnuz = fnuz_of_t<Ocp>;
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    const float value = Ocp::decode(code);
    const float reread = fnuz::decode(ocp_to_fnuz<Ocp>(code));
    CAPTURE(i);
    if (std::isfinite(value)) {
      CHECK(value == fnuz_scale_factor * reread);
    } else {
      CHECK(std::isnan(reread));
    }
  }
}

TEST_CASE_TEMPLATE("a finite payload comes back, with zeros positive", Ocp, e4m3, e5m2) {
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<std::uint8_t>(i);
    const std::uint8_t back = fnuz_to_ocp<Ocp>(ocp_to_fnuz<Ocp>(code));
    CAPTURE(i);
    if (!std::isfinite(Ocp::decode(code))) {
      CHECK(Ocp::from_bits(back).is_nan());
    } else {
      CHECK(back == (code == 0x80 ? 0x00 : code));
    }
  }
}

TEST_CASE_TEMPLATE("FNUZ values beyond OCP's range do not come back finite", Ocp, e4m3, e5m2) {
  for (int code = Ocp::max_code + 1; code < 0x80; ++code) {
    CHECK_FALSE(std::isfinite(Ocp::decode(fnuz_to_ocp<Ocp>(static_cast<std::uint8_t>(code)))));
  }
}

TEST_CASE_TEMPLATE("FNUZ hardware that rounds half the number makes the OCP payload", Ocp, e4m3, e5m2) {
  // What a kernel does with P and dS: half the factor, a clamp to half the range, then the device's conversion.
  using fnuz = fnuz_of_t<Ocp>;
  const float limit = Ocp::max / fnuz_scale_factor;
  for (float x = -1.5f * Ocp::max; x <= 1.5f * Ocp::max; x += Ocp::max / 4096) {
    const float half = x / fnuz_scale_factor;
    const float clamped = half > limit ? limit : half < -limit ? -limit : half;
    CHECK(fnuz::nearest_even(clamped).bits == ocp_to_fnuz<Ocp>(Ocp::nearest_even(x).bits));
  }
}
