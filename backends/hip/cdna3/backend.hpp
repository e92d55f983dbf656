// SPDX-License-Identifier: Apache-2.0
// The CDNA3 backend (MI300A, MI300X, MI325X). Compile for gfx942.
#pragma once

#include <octavo/algorithm/passes.hpp>
#include <octavo/backends/hip/common/device.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

struct hip_cdna3 : generic_passes, hip_common::loops<hip_cdna3, 304> {
  static constexpr const char* name() { return "hip-cdna3"; }
  static text unavailable() { return hip_common::missing_device("gfx942"); }
  static text device() { return hip_common::device_name(); }
};

static_assert(require_backend<hip_cdna3>::value);

}  // namespace backends
OCTAVO_END_NAMESPACE
