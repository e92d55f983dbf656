# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(sim octavo_sim_UNAVAILABLE)
octavo_backend(sim-cuda-hopper
  TYPE octavo::backends::sim_cuda_hopper
  HEADER octavo/backends/sim/hopper.hpp
  RECIPES token tile
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-blackwell
  TYPE octavo::backends::sim_cuda_blackwell
  HEADER octavo/backends/sim/blackwell.hpp
  RECIPES mx32
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
