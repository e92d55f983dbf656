# SPDX-License-Identifier: Apache-2.0
octavo_backend_target(sim octavo_sim_UNAVAILABLE)
octavo_backend(sim-cuda-hopper
  DESCRIPTION "the kernels of cuda-hopper on a host, every instruction of Hopper's modelled"
  TYPE octavo::backends::sim_cuda_hopper
  HEADER octavo/backends/sim/hopper.hpp
  RECIPES token tile
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-simt
  DESCRIPTION "the kernels of cuda-simt on a host, mma.sync modelled as an H200 has it"
  TYPE octavo::backends::sim_cuda_simt
  HEADER octavo/backends/sim/cuda_simt.hpp
  RECIPES token tile
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-hip-cdna3
  DESCRIPTION "the kernels of hip-cdna3 on a host, every instruction of CDNA3's modelled"
  TYPE octavo::backends::sim_hip_cdna3
  HEADER octavo/backends/sim/hip_cdna3.hpp
  RECIPES token tile
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-hip-cdna4
  DESCRIPTION "the kernels of hip-cdna4 on a host, every instruction of CDNA4's modelled"
  TYPE octavo::backends::sim_hip_cdna4
  HEADER octavo/backends/sim/hip_cdna4.hpp
  RECIPES mx32 token tile
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
octavo_backend(sim-cuda-blackwell
  DESCRIPTION "the kernels of cuda-blackwell on a host, every instruction of Blackwell's modelled"
  TYPE octavo::backends::sim_cuda_blackwell
  HEADER octavo/backends/sim/blackwell.hpp
  RECIPES mx32
  WITHOUT_E5M2
  LINK octavo::sim
  ENTRY octavo::backends::sim::entry
  UNAVAILABLE "${octavo_sim_UNAVAILABLE}")
