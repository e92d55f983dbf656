# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(sim octavo_sim_UNAVAILABLE)
octavo_backend(sim-cuda-hopper
  TYPE octavo::backends::sim_cuda_hopper
  HEADER octavo/backends/sim/hopper.hpp
  RECIPES token tile
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-simt
  TYPE octavo::backends::sim_cuda_simt
  HEADER octavo/backends/sim/cuda_simt.hpp
  RECIPES token tile
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-hip-cdna3
  TYPE octavo::backends::sim_hip_cdna3
  HEADER octavo/backends/sim/hip_cdna3.hpp
  RECIPES token tile
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
