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

# Instructions with block scales: not in every compiler that knows CDNA3's.
set(octavo_cdna4_UNAVAILABLE "${octavo_hip_UNAVAILABLE}")
if(CMAKE_HIP_COMPILER AND NOT octavo_cdna4_UNAVAILABLE)
  execute_process(
    COMMAND "${CMAKE_HIP_COMPILER}" -x hip --offload-arch=gfx950 --offload-device-only -nogpuinc -nogpulib -fsyntax-only /dev/null
    RESULT_VARIABLE octavo_no_gfx950 OUTPUT_QUIET ERROR_QUIET)
  if(octavo_no_gfx950)
    set(octavo_cdna4_UNAVAILABLE "the HIP compiler (${CMAKE_HIP_COMPILER}) does not know gfx950: clang 20 and ROCm 7 do")
  endif()
endif()
octavo_backend(hip-cdna4
  TYPE octavo::backends::hip_cdna4
  HEADER octavo/backends/hip/cdna4/backend.hpp
  RECIPES mx32 token tile
  LANGUAGE HIP
  ARCHITECTURES gfx950
  LINK octavo::hip
  ENTRY octavo::backends::gpu::entry
  UNAVAILABLE "${octavo_cdna4_UNAVAILABLE}")
