# SPDX-License-Identifier: Apache-2.0
# octavo::hip, what a program links that calls AMD's runtime. Where it cannot be had, octavo_hip_UNAVAILABLE says why.
set(octavo_hip_UNAVAILABLE "")
if(TARGET octavo::hip)
  return()
endif()

find_library(octavo_amdhip64 amdhip64 HINTS "${CMAKE_HIP_COMPILER_ROCM_ROOT}/lib" ENV ROCM_PATH PATHS /opt/rocm/lib
  PATH_SUFFIXES lib)
mark_as_advanced(octavo_amdhip64)
if(NOT octavo_amdhip64)
  set(octavo_hip_UNAVAILABLE "no libamdhip64 was found (libamdhip64-dev, or set ROCM_PATH)")
  return()
endif()
add_library(octavo::hip INTERFACE IMPORTED GLOBAL)
target_link_libraries(octavo::hip INTERFACE octavo::octavo "${octavo_amdhip64}")
# Products and sums fuse where the source writes them in one expression, and not where the compiler meets them: S must
# have the same bits in every kernel.
target_compile_options(octavo::hip INTERFACE "$<$<COMPILE_LANGUAGE:HIP>:-ffp-contract=on>")
