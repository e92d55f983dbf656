// SPDX-License-Identifier: Apache-2.0
// Launches of the generic loops on a stream. Tile kernels run on a few resident blocks that draw tickets, so that items
// start in order; row kernels run one item per thread.
#pragma once

#include <octavo/backends/gpu/tile.hpp>
#include <octavo/tensor/status.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

inline constexpr int block_threads = 512;
inline constexpr int row_threads = 64;

namespace {  // kernels of a header have internal linkage: two libraries of one program must not run each other's

template <class Kernel>
__global__ void __launch_bounds__(block_threads)
    run_tiles(OCTAVO_KERNEL_ARGUMENT Kernel kernel, float* scratch, std::size_t floats_per_block, std::int64_t items,
              unsigned long long* next) {
  __shared__ unsigned long long ticket;
  block_context ctx(scratch + blockIdx.x * floats_per_block);
  for (;;) {
    if (threadIdx.x == 0) ticket = atomicAdd(next, 1ull);
    __syncthreads();
    const std::int64_t item = static_cast<std::int64_t>(ticket);
    __syncthreads();
    if (item >= items) return;
    ctx.reset();
    kernel(ctx, item);
    __syncthreads();
  }
}

template <class Kernel>
__global__ void __launch_bounds__(row_threads) run_rows(OCTAVO_KERNEL_ARGUMENT Kernel kernel, std::int64_t items) {
  block_context none(nullptr);
  for (std::int64_t item = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; item < items;
       item += static_cast<std::int64_t>(gridDim.x) * blockDim.x)
    kernel(none, item);
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, launch_bound(Kernel::threads, Kernel::blocks_per_sm))
    run_blocks(OCTAVO_KERNEL_ARGUMENT Kernel kernel) {
  kernel();
}

}  // namespace

/// The main loops have names; kernels without take no tiles.
template <class Kernel>
concept uses_tiles = requires { Kernel::name; };

inline status checked(error_t error, const char* backend) {
  if (error == success) return {};
  return {status_code::launch_failure, text(backend) << ": " << error_text(error)};
}

/// scratch: a ticket counter (64 bytes), then floats_per_block for each of `blocks`.
template <class Kernel>
status launch(stream_t stream, void* scratch, std::size_t floats_per_block, int blocks, std::int64_t items,
              const Kernel& kernel, const char* backend) {
  if constexpr (uses_tiles<Kernel>) {
    auto* next = static_cast<unsigned long long*>(scratch);
    if (const error_t e = clear(next, sizeof *next, stream); e != success) return checked(e, backend);
    const int grid = items < blocks ? static_cast<int>(items) : blocks;
    run_tiles<<<grid, block_threads, 0, stream>>>(kernel, static_cast<float*>(scratch) + 16, floats_per_block, items,
                                                  next);
  } else {
    const std::int64_t wanted = (items + row_threads - 1) / row_threads;
    run_rows<<<static_cast<unsigned>(wanted < 4096 ? wanted : 4096), row_threads, 0, stream>>>(kernel, items);
  }
  return checked(last_error(), backend);
}

/// A kernel that is written for blocks of its own: threads, shared_bytes, blocks_per_sm and blocks() are its members. One
/// whose blocks stay and draw their work has blocks(units) instead, of so many multiprocessors or compute units. One that
/// counts on the L1 cache for what its threads keep in local memory has local_bytes of a block.
template <class Kernel>
status launch_blocks(stream_t stream, const Kernel& kernel, int units, const char* backend) {
  std::int64_t blocks;
  if constexpr (requires { kernel.blocks(units); })
    blocks = kernel.blocks(units);
  else
    blocks = kernel.blocks();
  if (blocks == 0) return {};
  if (const error_t e = allow_shared(run_blocks<Kernel>, Kernel::shared_bytes); e != success)
    return checked(e, backend);
  if constexpr (requires { Kernel::local_bytes; }) {
    constexpr int of_block = Kernel::shared_bytes + 1024;  // the system's own KB
    if constexpr (Kernel::local_bytes > 0)
      if (const error_t e = leave_to_cache(run_blocks<Kernel>, of_block * Kernel::blocks_per_sm); e != success)
        return checked(e, backend);
  }
  run_blocks<<<static_cast<unsigned>(blocks), Kernel::threads, Kernel::shared_bytes, stream>>>(kernel);
  return checked(last_error(), backend);
}

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
