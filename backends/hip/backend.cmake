# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(hip octavo_hip_UNAVAILABLE)
if(octavo_hip_missing)  # said by octavo_enable_hip, and nearer to the cause
  set(octavo_hip_UNAVAILABLE "${octavo_hip_missing}")
endif()
octavo_backend(hip-cdna3
  TYPE octavo::backends::hip_cdna3
  HEADER octavo/backends/hip/cdna3/backend.hpp
  RECIPES token tile
  LANGUAGE HIP
  ARCHITECTURES gfx942
  LINK octavo::hip
  ENTRY octavo::backends::gpu::entry
  UNAVAILABLE "${octavo_hip_UNAVAILABLE}")
