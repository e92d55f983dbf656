// SPDX-License-Identifier: Apache-2.0
// The lane-level schedules on CDNA3 (MI300A, MI300X, MI325X). Compile for gfx942.
#pragma once

#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/hip/common/backend.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

/// 304 compute units are an MI300X's.
struct hip_cdna3 : simt::passes<cdna3::machine>, hip_common::block_backend<hip_cdna3, 304> {
  static constexpr const char* name() { return "hip-cdna3"; }
  static text unavailable() { return unavailable_unless("gfx942"); }
};

static_assert(require_backend<hip_cdna3>::value);

}  // namespace backends
OCTAVO_END_NAMESPACE
