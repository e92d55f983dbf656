# SPDX-License-Identifier: Apache-2.0
octavo_backend(reference
  TYPE octavo::backends::reference
  HEADER octavo/backends/reference/backend.hpp
  RECIPES mx32 token tile tensor bf16 exact)
