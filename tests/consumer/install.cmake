# SPDX-License-Identifier: Apache-2.0
# Installs BUILD into a fresh PREFIX and looks at what arrived: files, and under include/ headers only.
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}"
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

file(GLOB_RECURSE files LIST_DIRECTORIES true RELATIVE "${PREFIX}" "${PREFIX}/*")
foreach(file IN LISTS files)
  if(IS_SYMLINK "${PREFIX}/${file}")
    message(FATAL_ERROR "a link was installed: ${file}")
  elseif(NOT IS_DIRECTORY "${PREFIX}/${file}" AND file MATCHES "^include/" AND NOT file MATCHES "\\.(hpp|cuh|h)$")
    message(FATAL_ERROR "not a header: ${file}")
  endif()
endforeach()
foreach(file IN ITEMS include/octavo/attention.hpp include/octavo/backends/cpu/backend.hpp
                      share/octavo/cmake/octavoConfig.cmake share/octavo/backends/cpu/backend.cmake)
  if(NOT file IN_LIST files)
    message(FATAL_ERROR "not installed: ${file}")
  endif()
endforeach()
