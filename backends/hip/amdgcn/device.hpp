// SPDX-License-Identifier: Apache-2.0
// Who a lane is, how waves wait, and how the lanes of a wave exchange registers: the instructions of AMD's CDNA by the
// compiler's builtins. On a host, where they are models of backends/sim, the same kernels run without a GPU.
#pragma once

#include <octavo/backends/simt/qualifiers.hpp>

#include <cstdint>

#if !defined(__HIP__)
#include <octavo/backends/sim/amdgcn/device.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::amdgcn {

inline constexpr int wave_lanes = 64;

OCTAVO_DEVICE int thread_index() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
OCTAVO_DEVICE std::int64_t block_index() { return __builtin_amdgcn_workgroup_id_x(); }

/// The block's dynamic shared memory (LDS), aligned to 1024 bytes.
OCTAVO_DEVICE char* shared_memory() {
  extern __shared__ __attribute__((aligned(1024))) char memory[];
  return memory;
}

/// All threads of the block. Loads from global memory may stay under way.
OCTAVO_DEVICE void sync_block() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/// All lanes of a wave. They run in step, so that only the order of memory needs saying.
OCTAVO_DEVICE void sync_wave() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// Data-parallel primitives: the moves are part of a vector instruction and cost no shared memory.

/// v_mov_b32_dpp quad_perm: lane n of four reads lane Sn.
template <int S0, int S1, int S2, int S3>
OCTAVO_DEVICE std::uint32_t quad_perm(std::uint32_t x) {
  constexpr int control = S0 | S1 << 2 | S2 << 4 | S3 << 6;
  return static_cast<std::uint32_t>(__builtin_amdgcn_mov_dpp(static_cast<int>(x), control, 0xf, 0xf, true));
}
/// v_mov_b32_dpp row_half_mirror: lane n of eight reads lane 7 - n.
OCTAVO_DEVICE std::uint32_t row_half_mirror(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_mov_dpp(static_cast<int>(x), 0x141, 0xf, 0xf, true));
}
/// v_mov_b32_dpp row_ror: lane n of sixteen reads lane n - Count, around.
template <int Count>
OCTAVO_DEVICE std::uint32_t row_ror(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_mov_dpp(static_cast<int>(x), 0x120 | Count, 0xf, 0xf, true));
}

/// ds_swizzle_b32, which uses the paths of shared memory and not its space: lane n reads lane n ^ Mask, Mask below 32.
template <int Mask>
OCTAVO_DEVICE std::uint32_t swizzle_xor(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_ds_swizzle(static_cast<int>(x), Mask << 10 | 0x1f));
}
/// ds_bpermute_b32: reads lane `source`.
OCTAVO_DEVICE std::uint32_t bpermute(std::uint32_t x, int source) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_ds_bpermute(source * 4, static_cast<int>(x)));
}
/// Whether x holds in any lane of the wave.
OCTAVO_DEVICE bool any_lane(bool x) { return __builtin_amdgcn_ballot_w64(x) != 0; }

/// Four words from global memory.
OCTAVO_DEVICE void load_piece(const void* from, std::uint32_t (&piece)[4]) {
  using words = std::uint32_t __attribute__((ext_vector_type(4)));
  const words x = *(const __attribute__((address_space(1))) words*)from;  // NOLINT: no C++ cast changes address spaces
  for (int i = 0; i < 4; ++i) piece[i] = x[i];
}
/// Where p stands in shared memory: 32 bits, where a pointer has 64.
OCTAVO_DEVICE std::uint32_t shared_address(void* p) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>((__attribute__((address_space(3))) void*)p));
}
/// Four words to shared memory.
OCTAVO_DEVICE void store_piece(std::uint32_t address, const std::uint32_t (&piece)[4]) {
  using words = std::uint32_t __attribute__((ext_vector_type(4)));
  auto* to = (__attribute__((address_space(3))) words*)(std::uintptr_t{address});  // NOLINT: as above
  *to = words{piece[0], piece[1], piece[2], piece[3]};
}

/// Shared or global memory; orders nothing else.
OCTAVO_DEVICE void atomic_or(std::uint32_t* to, std::uint32_t bits) {
  __hip_atomic_fetch_or(to, bits, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

}  // namespace backends::amdgcn
OCTAVO_END_NAMESPACE
#endif
