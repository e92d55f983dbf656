# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(kokkos octavo_kokkos_UNAVAILABLE)
octavo_backend(kokkos
  DESCRIPTION "the generic loops on a Kokkos execution space"
  TYPE octavo::backends::kokkos
  HEADER octavo/backends/kokkos/entry.hpp
  RECIPES mx32 token tile tensor bf16
  LINK octavo::kokkos
  ENTRY octavo::backends::kokkos_entry
  UNAVAILABLE "${octavo_kokkos_UNAVAILABLE}")
