# SPDX-License-Identifier: Apache-2.0
include("${CMAKE_CURRENT_LIST_DIR}/target.cmake")
octavo_backend(kokkos
  TYPE octavo::backends::kokkos
  HEADER octavo/backends/kokkos/entry.hpp
  RECIPES mx32 token tile tensor bf16
  LINK octavo::kokkos
  ENTRY octavo::backends::kokkos_entry
  UNAVAILABLE "${octavo_kokkos_UNAVAILABLE}")
