// expect: Backend: load(context&, operand&, payload_plane, first, n) is missing or not callable
// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cpu/backend.hpp>

struct incomplete : octavo::backends::cpu {
  static void load() = delete;
};
static_assert(octavo::require_backend<incomplete>::value);
