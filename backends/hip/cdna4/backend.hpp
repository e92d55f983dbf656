// SPDX-License-Identifier: Apache-2.0
// The lane-level schedules on CDNA4 (MI350X, MI355X). Compile for gfx950, with clang 20 or newer or ROCm 7.
#pragma once

#include <octavo/backends/hip/cdna4/machine.hpp>
#include <octavo/backends/hip/common/backend.hpp>
#include <octavo/backends/simt/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends {

/// 256 compute units are an MI355X's.
struct hip_cdna4 : simt::passes<cdna4::machine>, hip_common::block_backend<hip_cdna4, 256> {
  static constexpr const char* name() { return "hip-cdna4"; }
  static text unavailable() { return unavailable_unless("gfx950"); }
};

static_assert(require_backend<hip_cdna4>::value);

}  // namespace backends
OCTAVO_END_NAMESPACE
