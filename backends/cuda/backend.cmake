# SPDX-License-Identifier: Apache-2.0
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND NOT TARGET octavo::cuda)
  add_library(octavo::cuda INTERFACE IMPORTED GLOBAL)
  target_link_libraries(octavo::cuda INTERFACE octavo::octavo CUDA::cudart_static)
endif()

octavo_backend(cuda-hopper
  DESCRIPTION "FP8 on Hopper's wgmma (sm_90a), FP32 units for what that does not take"
  TYPE octavo::backends::cuda_hopper
  HEADER octavo/backends/cuda/hopper/backend.hpp
  RECIPES mx32 token tile tensor bf16
  LANGUAGE CUDA
  ARCHITECTURES 90a-real
  LINK octavo::cuda
  ENTRY octavo::backends::gpu::entry)

# Machine code for what has been run, and PTX for the rest: FP8 mma.sync begins with sm_89.
octavo_backend(cuda-simt
  DESCRIPTION "FP8 on mma.sync (sm_89 and later), the kernels written lane by lane"
  TYPE octavo::backends::cuda_simt
  HEADER octavo/backends/cuda/simt/backend.hpp
  RECIPES token tile
  WITHOUT_E5M2
  LANGUAGE CUDA
  ARCHITECTURES 90-real 89-virtual
  LINK octavo::cuda
  ENTRY octavo::backends::gpu::entry)

octavo_backend(cuda-blackwell
  DESCRIPTION "block-scaled FP8 on Blackwell's tcgen05 and tensor memory (sm_100, sm_103)"
  TYPE octavo::backends::cuda_blackwell
  HEADER octavo/backends/cuda/blackwell/backend.hpp
  RECIPES mx32
  WITHOUT_E5M2
  LANGUAGE CUDA
  ARCHITECTURES 100f
  LINK octavo::cuda
  ENTRY octavo::backends::gpu::entry)
