// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/mixed.hpp on the host.
#pragma once

#include <octavo/backends/sim/ptx/convert.hpp>
#include <octavo/config.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline void add_e4m3(std::uint32_t bytes, float (&sum)[4]) {
  float x[4];
  unpack_e4m3(bytes, x);
  for (int i = 0; i < 4; ++i) sum[i] += x[i];
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
