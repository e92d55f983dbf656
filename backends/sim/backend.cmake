# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(sim octavo_sim_UNAVAILABLE)
octavo_backend(sim-cuda-hopper
  TYPE octavo::backends::sim_cuda_hopper
  HEADER octavo/backends/sim/hopper.hpp
  RECIPES token tile
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-simt
  TYPE octavo::backends::sim_cuda_simt
  HEADER octavo/backends/sim/cuda_simt.hpp
  RECIPES token tile
  WITHOUT_E5M2
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
octavo_backend(sim-hip-cdna4
  TYPE octavo::backends::sim_hip_cdna4
  HEADER octavo/backends/sim/hip_cdna4.hpp
  RECIPES mx32 token tile
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-blackwell
  TYPE octavo::backends::sim_cuda_blackwell
  HEADER octavo/backends/sim/blackwell.hpp
  RECIPES mx32
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
