# SPDX-License-Identifier: Apache-2.0
octavo_backend(cpu
  DESCRIPTION "FP8 by threads and SIMD on the host's processor"
  TYPE octavo::backends::cpu
  HEADER octavo/backends/cpu/backend.hpp
  RECIPES mx32 token tile tensor bf16)
