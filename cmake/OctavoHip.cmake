# SPDX-License-Identifier: Apache-2.0
# octavo_enable_hip(): language HIP where a compiler for it is found; a macro, since a language belongs to the scope
# that enables it. Where none is, octavo_hip_missing says why, and nothing else happens.
#
# A ROCm installation brings what CMake wants of the language. Debian and Ubuntu have the parts (clang, lld, the device
# library, the runtime), but in places where CMake does not look, and clang neither; so a folder that looks like a ROCm
# installation is made of links to them.
include_guard(GLOBAL)

set(octavo_hip_packages "clang-19 clang-tools-19 lld-19 libamdhip64-dev rocm-device-libs")

macro(octavo_enable_hip)
  set(octavo_hip_missing "")
  if(NOT CMAKE_HIP_COMPILER)
    octavo_find_rocm(octavo_rocm)
    if(NOT octavo_rocm)
      octavo_assemble_rocm("${CMAKE_BINARY_DIR}/rocm" octavo_hip_missing)
    endif()
  elseif(EXISTS "${CMAKE_BINARY_DIR}/rocm/lib/cmake/hip-lang")  # assembled by an earlier run
    set(CMAKE_HIP_COMPILER_ROCM_ROOT "${CMAKE_BINARY_DIR}/rocm")
  endif()
  if(NOT octavo_hip_missing)
    if(NOT CMAKE_HIP_ARCHITECTURES)
      set(CMAKE_HIP_ARCHITECTURES gfx942)  # of CMake's own checks: each backend names its own
    endif()
    enable_language(HIP)
  endif()
endmacro()

# A whole ROCm: CMake's own search finds it.
function(octavo_find_rocm found)
  find_program(octavo_hipconfig hipconfig HINTS ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES bin)
  mark_as_advanced(octavo_hipconfig)
  set(root "")
  if(octavo_hipconfig)
    execute_process(COMMAND "${octavo_hipconfig}" --rocmpath OUTPUT_VARIABLE root ERROR_QUIET
      OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(root AND EXISTS "${root}/lib/cmake/hip-lang/hip-lang-config.cmake")
    set(${found} "${root}" PARENT_SCOPE)
  else()
    set(${found} "" PARENT_SCOPE)
  endif()
endfunction()

# Links at `root` to a distribution's parts, and the cache entries that lead CMake there; else `missing` says what is not
# there. (The variables are cached, as CMake's own are, since a language is enabled once per build folder.)
function(octavo_assemble_rocm root missing)
  # The first release that knows the FP8 instructions of gfx942 is 17; Debian's hipcc wants an older one.
  find_program(octavo_hip_clang NAMES clang++-22 clang++-21 clang++-20 clang++-19 clang++-18 clang++-17)
  find_library(octavo_amdhip64 amdhip64)
  find_path(octavo_hip_include hip/hip_runtime.h)
  find_path(octavo_device_libs ocml.bc
    PATHS "/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/amdgcn/bitcode" /usr/lib/amdgcn/bitcode /usr/amdgcn/bitcode)
  mark_as_advanced(octavo_hip_clang octavo_amdhip64 octavo_hip_include octavo_device_libs)
  set(absent "")
  foreach(part IN ITEMS "octavo_hip_clang=clang 17 or newer" "octavo_amdhip64=libamdhip64" "octavo_hip_include=hip/hip_runtime.h"
      "octavo_device_libs=ocml.bc")
    string(REGEX MATCH "^(.*)=(.*)$" _ "${part}")
    if(NOT ${CMAKE_MATCH_1})
      list(APPEND absent "${CMAKE_MATCH_2}")
    endif()
  endforeach()
  if(octavo_hip_clang)
    foreach(tool IN ITEMS ld.lld clang-offload-bundler)  # clang calls them
      execute_process(COMMAND "${octavo_hip_clang}" "-print-prog-name=${tool}" OUTPUT_VARIABLE path
        OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(NOT EXISTS "${path}")
        list(APPEND absent "${tool} beside ${octavo_hip_clang}")
      endif()
    endforeach()
  endif()
  if(absent)
    list(JOIN absent ", " absent)
    set(${missing} "no ROCm, and of its parts not ${absent} (Debian: ${octavo_hip_packages})" PARENT_SCOPE)
    return()
  endif()

  # The device library has one file per processor, and clang refuses a processor that has none. The file says little
  # more than a number, which generic code asks for: that of gfx940 serves gfx942, its successor.
  file(MAKE_DIRECTORY "${root}/bitcode" "${root}/lib/cmake/hip-lang")
  file(GLOB files "${octavo_device_libs}/*.bc")
  foreach(file IN LISTS files)
    cmake_path(GET file FILENAME name)
    file(CREATE_LINK "${file}" "${root}/bitcode/${name}" SYMBOLIC)
  endforeach()
  if(NOT EXISTS "${root}/bitcode/oclc_isa_version_942.bc")
    file(CREATE_LINK "${octavo_device_libs}/oclc_isa_version_940.bc" "${root}/bitcode/oclc_isa_version_942.bc" SYMBOLIC)
  endif()

  file(CONFIGURE OUTPUT "${root}/lib/cmake/hip-lang/hip-lang-config.cmake" @ONLY CONTENT [=[
# What CMake asks of a ROCm installation: the target that programs in the language HIP link.
if(NOT TARGET hip-lang::device)
  add_library(hip-lang::amdhip64 SHARED IMPORTED GLOBAL)
  set_target_properties(hip-lang::amdhip64 PROPERTIES IMPORTED_LOCATION "@octavo_amdhip64@")
  add_library(hip-lang::device INTERFACE IMPORTED GLOBAL)
  set_target_properties(hip-lang::device PROPERTIES INTERFACE_LINK_LIBRARIES hip-lang::amdhip64
    INTERFACE_LINK_OPTIONS "$<$<LINK_LANGUAGE:HIP>:--hip-link>")
endif()
set(_CMAKE_HIP_DEVICE_RUNTIME_TARGET hip-lang::device)
]=])
  set(CMAKE_HIP_COMPILER_ROCM_ROOT "${root}" PARENT_SCOPE)
  set(CMAKE_HIP_COMPILER "${octavo_hip_clang}" CACHE FILEPATH "Compiler of the language HIP")
  set(CMAKE_HIP_FLAGS "--rocm-device-lib-path=${root}/bitcode" CACHE STRING "Flags of the language HIP")
endfunction()
