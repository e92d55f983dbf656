# SPDX-License-Identifier: Apache-2.0
octavo_backend(reference
  DESCRIPTION "whole matrices in float64, what all others are measured against"
  TYPE octavo::backends::reference
  HEADER octavo/backends/reference/backend.hpp
  RECIPES mx32 token tile tensor bf16 exact)
