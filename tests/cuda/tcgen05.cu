// SPDX-License-Identifier: Apache-2.0
// Every wrapper of Blackwell's instructions once, for the assembler. Nothing here runs.
#include <octavo/backends/cuda/ptx/tcgen05.hpp>
#include <octavo/backends/cuda/ptx/tensor_copy.hpp>

using namespace octavo;
using namespace octavo::backends::ptx;

namespace {

template <int n>
__device__ void move_columns(tensor_address t) {
  float d[n];
  std::uint32_t x[n];
  tcgen05_load(d, t);
  tcgen05_wait_loads(d);
  OCTAVO_UNROLL
  for (int i = 0; i < n; ++i) x[i] = static_cast<std::uint32_t>(d[i]);
  tcgen05_store(t, x);
  tcgen05_store(t.column(n), d);
  tcgen05_wait_stores();
}

__device__ void multiply(tensor_address t, const char* shared) {
  constexpr auto plain = mma_instruction::plain<e4m3, e5m2>(256);
  constexpr auto scaled = mma_instruction::scaled<e4m3, e4m3>(128, major::k, major::r);
  const auto along_k = shared_operand::k_major(shared, swizzle::bytes_128),
             chunks = shared_operand::k_major(shared, 128);
  const auto along_rows = shared_operand::r_major(shared + 16384, swizzle::bytes_64, 128);
  tcgen05_mma(t, along_k, chunks, plain, false);
  tcgen05_mma(t, t.column(256), chunks.advanced(4096), plain, true);
  tcgen05_copy_scales(t.column(300), shared_operand::scale_tile(shared));
  tcgen05_mma_scaled(t, along_k.advanced(32), along_rows, scaled, t.column(300), t.column(304), false);
  tcgen05_mma_scaled(t, t.column(256), along_rows, scaled.scale_bytes(1, 2), t.column(300), t.column(304), true);
}

}  // namespace

/// As kernels are: an object in the parameters, which holds the map.
struct copies {
  tensor_map map;
};

extern "C" __global__ void tensor_copy_wrappers(const __grid_constant__ copies c) {
  char* shared = shared_memory();
  auto& barrier = *reinterpret_cast<shared_barrier*>(shared + 65536);
  if (thread_index() != 0) return;
  tensor_load(shared, c.map, -1, 2, barrier);
  tensor_load(shared, c.map, -1, 2, 3, barrier);
  tensor_load(shared, c.map, -1, 2, 3, 4, barrier);
}

bool encode_a_map(const void* data);
bool encode_a_map(const void* data) {
  copies c;
  return encode(c.map, {data, 2, {128, 100}, {128}, {128, 64}, swizzle::bytes_128});
}

extern "C" __global__ void __launch_bounds__(128, 1) tcgen05_wrappers() {
  char* shared = shared_memory();
  auto* address = reinterpret_cast<tensor_address*>(shared + 65536);
  auto& barrier = *reinterpret_cast<shared_barrier*>(shared + 65544);
  const int warp = uniform(thread_index() / warp_threads);
  if (warp == 0) {
    tcgen05_alloc(address, 512);
    tcgen05_relinquish();
  }
  if (thread_index() == 0) {
    barrier.init(1);
    fence_barriers();
  }
  tcgen05_fence_before();
  sync_block();
  tcgen05_fence_after();
  const tensor_address t = *address;
  if (warp == 0 && elect_one()) {
    multiply(t, shared);
    tcgen05_commit(barrier);
  }
  barrier.wait(0);
  tcgen05_fence_after();
  move_columns<1>(t.of_warp(warp));
  move_columns<2>(t.of_warp(warp));
  move_columns<4>(t.of_warp(warp));
  move_columns<8>(t.of_warp(warp));
  move_columns<16>(t.of_warp(warp));
  move_columns<96>(t.of_warp(warp));
  tcgen05_fence_before();
  sync_block();
  tcgen05_fence_after();
  if (warp == 0) tcgen05_dealloc(t, 512);
}
