// SPDX-License-Identifier: Apache-2.0
// The CDNA3 backend (MI300A, MI300X, MI325X). Compile for gfx942.
#pragma once

#include <octavo/backends/hip/cdna3/machine.hpp>
#include <octavo/backends/hip/common/device.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

/// Schedules for d up to 256, the generic loops on FP32 units for the rest. 304: the compute units of an MI300X.
struct hip_cdna3 : simt::passes<cdna3::machine>, hip_common::loops<hip_cdna3, 304> {
  static constexpr const char* name() { return "hip-cdna3"; }
  static text unavailable() { return hip_common::missing_device("gfx942"); }
  static text device() { return hip_common::device_name(); }
};

static_assert(require_backend<hip_cdna3>::value);

}  // namespace backends
OCTAVO_END_NAMESPACE
