# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(hip octavo_hip_UNAVAILABLE)
if(octavo_hip_missing)  # said by octavo_enable_hip, and nearer to the cause
  set(octavo_hip_UNAVAILABLE "${octavo_hip_missing}")
endif()
octavo_backend(hip-cdna3
  DESCRIPTION "FP8 on CDNA3's v_mfma (MI300 and MI325, gfx942), the kernels written lane by lane"
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
  # A kernel with the flags of the build: a compiler that knows the processor may have a device library that does not.
  set(octavo_probe "${CMAKE_CURRENT_BINARY_DIR}/gfx950.hip")
  file(CONFIGURE OUTPUT "${octavo_probe}" @ONLY CONTENT [=[
#include <hip/hip_runtime.h>
#if !__has_builtin(__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4)
#error "no matrix instructions with block scales"
#endif
__global__ void probe(float* x) { *x = expf(*x); }
]=])
  separate_arguments(octavo_probe_flags NATIVE_COMMAND "${CMAKE_HIP_FLAGS}")
  execute_process(
    COMMAND "${CMAKE_HIP_COMPILER}" -x hip ${octavo_probe_flags} --offload-arch=gfx950 --offload-device-only -c "${octavo_probe}"
      -o "${octavo_probe}.o"
    RESULT_VARIABLE octavo_no_gfx950 OUTPUT_QUIET ERROR_VARIABLE octavo_probe_error)
  if(octavo_no_gfx950)
    string(REGEX REPLACE "^.*error: ([^;\n]*).*$" "\\1" octavo_probe_error "${octavo_probe_error}")
    set(octavo_cdna4_UNAVAILABLE
      "the HIP compiler (${CMAKE_HIP_COMPILER}) does not compile for gfx950 (clang 20 and ROCm 7 do): ${octavo_probe_error}")
  endif()
endif()
octavo_backend(hip-cdna4
  DESCRIPTION "FP8 on CDNA4's v_mfma, block scales included (MI350 and MI355, gfx950), the kernels written lane by lane"
  TYPE octavo::backends::hip_cdna4
  HEADER octavo/backends/hip/cdna4/backend.hpp
  RECIPES mx32 token tile
  LANGUAGE HIP
  ARCHITECTURES gfx950
  LINK octavo::hip
  ENTRY octavo::backends::gpu::entry
  UNAVAILABLE "${octavo_cdna4_UNAVAILABLE}")
