// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/pairs.hpp on the host.
#pragma once

#include <octavo/backends/cuda/ptx/pairs.hpp>
#include <octavo/backends/sim/ptx/convert.hpp>

#include <cmath>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

inline pair multiply_add(pair a, pair b, pair c) {
  return {std::fma(a.low, b.low, c.low), std::fma(a.high, b.high, c.high)};
}
inline pair add(pair a, pair b) { return {a.low + b.low, a.high + b.high}; }
inline pair subtract(pair a, pair b) { return {a.low - b.low, a.high - b.high}; }
inline pair multiply(pair a, pair b) { return {multiply(a.low, b.low), multiply(a.high, b.high)}; }

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
