// SPDX-License-Identifier: Apache-2.0
// Tensor memory: 128 lanes x 512 columns of 32 bits per multiprocessor, allocated by columns. Warp w of a block reaches
// lanes 32 (w % 4) to 32 (w % 4) + 31 only, so that a group of four warps reaches all of them.
//
// Loads and stores are asynchronous: registers have their values, or tensor memory has, after the wait of the thread
// that issued them. What other threads or the tensor cores do next with these columns is ordered by that wait,
// tcgen05_fence_before(), a barrier, and tcgen05_fence_after() on the other side.
#pragma once

#include <octavo/backends/cuda/ptx/device.hpp>
#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/config.hpp>

#include <cstdint>

#if !defined(__CUDACC__)
#include <octavo/backends/sim/ptx/tensor_memory.hpp>
#else
OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// One warp, all lanes: takes `columns` (32, 64, 128, 256 or 512) and writes their tensor_address to shared memory, for
/// others to read behind a barrier of the block. Waits until other blocks of the multiprocessor have freed enough.
OCTAVO_DEVICE void tcgen05_alloc(tensor_address* to, int columns) {
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(to)),
               "r"(columns)
               : "memory");
}
/// One warp, all lanes: gives back what an alloc gave, once nothing uses it any more. All of it, before the block ends.
OCTAVO_DEVICE void tcgen05_dealloc(tensor_address from, int columns) {
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(from.bits), "r"(columns) : "memory");
}
/// One warp, all lanes: this block allocates no more.
OCTAVO_DEVICE void tcgen05_relinquish() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

/// Before a barrier (or an arrival): this thread's loads and stores that it has waited for come before what others do
/// behind it.
OCTAVO_DEVICE void tcgen05_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
/// Behind a barrier (or the wait for a phase): what this thread does to tensor memory from here on comes after what
/// others did before it.
OCTAVO_DEVICE void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

namespace detail {
template <int n>
OCTAVO_DEVICE void load_columns(float* d, tensor_address from);
template <int n>
OCTAVO_DEVICE void store_columns(tensor_address to, const std::uint32_t* x);

// Written out per number of columns, since the operands of an asm statement are a fixed list.
template <>
OCTAVO_DEVICE void load_columns<1>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {"
      "%0"
      "}, [%1];"
      : "=f"(d[0])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void load_columns<2>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x2.b32 {"
      "%0, %1"
      "}, [%2];"
      : "=f"(d[0]), "=f"(d[1])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void load_columns<4>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x4.b32 {"
      "%0, %1, %2, %3"
      "}, [%4];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void load_columns<8>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x8.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7"
      "}, [%8];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void load_columns<16>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
      "}, [%16];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]),
        "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void load_columns<32>(float* d, tensor_address from) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%32];"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]), "=f"(d[4]), "=f"(d[5]), "=f"(d[6]), "=f"(d[7]), "=f"(d[8]),
        "=f"(d[9]), "=f"(d[10]), "=f"(d[11]), "=f"(d[12]), "=f"(d[13]), "=f"(d[14]), "=f"(d[15]), "=f"(d[16]),
        "=f"(d[17]), "=f"(d[18]), "=f"(d[19]), "=f"(d[20]), "=f"(d[21]), "=f"(d[22]), "=f"(d[23]), "=f"(d[24]),
        "=f"(d[25]), "=f"(d[26]), "=f"(d[27]), "=f"(d[28]), "=f"(d[29]), "=f"(d[30]), "=f"(d[31])
      : "r"(from.bits)
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<1>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {"
      "%1"
      "};" ::"r"(to.bits),
      "r"(x[0])
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<2>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x2.b32 [%0], {"
      "%1, %2"
      "};" ::"r"(to.bits),
      "r"(x[0]), "r"(x[1])
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<4>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x4.b32 [%0], {"
      "%1, %2, %3, %4"
      "};" ::"r"(to.bits),
      "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<8>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8"
      "};" ::"r"(to.bits),
      "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7])
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<16>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16"
      "};" ::"r"(to.bits),
      "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(x[8]), "r"(x[9]),
      "r"(x[10]), "r"(x[11]), "r"(x[12]), "r"(x[13]), "r"(x[14]), "r"(x[15])
      : "memory");
}
template <>
OCTAVO_DEVICE void store_columns<32>(tensor_address to, const std::uint32_t* x) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32"
      "};" ::"r"(to.bits),
      "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(x[4]), "r"(x[5]), "r"(x[6]), "r"(x[7]), "r"(x[8]), "r"(x[9]),
      "r"(x[10]), "r"(x[11]), "r"(x[12]), "r"(x[13]), "r"(x[14]), "r"(x[15]), "r"(x[16]), "r"(x[17]), "r"(x[18]),
      "r"(x[19]), "r"(x[20]), "r"(x[21]), "r"(x[22]), "r"(x[23]), "r"(x[24]), "r"(x[25]), "r"(x[26]), "r"(x[27]),
      "r"(x[28]), "r"(x[29]), "r"(x[30]), "r"(x[31])
      : "memory");
}
}  // namespace detail

/// Loads registers [first, first + n) of d: register first + i of lane l of the calling warp w is column i of lane
/// 32 (w % 4) + l behind `from`, which is the same in all lanes of the warp and points at lane 32 (w % 4) (32x32b). n is
/// 1, 2, 4, 8, 16 or a multiple of 32. d has its values behind tcgen05_wait_loads(d).
template <int n, int N>
OCTAVO_DEVICE void tcgen05_load(float (&d)[N], int first, tensor_address from) {
  constexpr int step = n < 32 ? n : 32;
  static_assert(n > 0 && n % step == 0 && (step & (step - 1)) == 0, "n is 1, 2, 4, 8, 16 or a multiple of 32");
  OCTAVO_UNROLL
  for (int i = 0; i < n; i += step) detail::load_columns<step>(d + first + i, from.column(i));
}
template <int N>
OCTAVO_DEVICE void tcgen05_load(float (&d)[N], tensor_address from) {
  tcgen05_load<N>(d, 0, from);
}
/// Waits for all loads of the calling warp; d: every array (up to three) that they load to, so that the compiler reads
/// them only then.
template <int... N>
OCTAVO_DEVICE void tcgen05_wait_loads(float (&... d)[N]) {
  static_assert(sizeof...(N) >= 1 && sizeof...(N) <= 3);
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  const auto touch = [](float* x, int n) {
    OCTAVO_UNROLL
    for (int i = 0; i < n; ++i) asm volatile("" : "+f"(x[i])::"memory");
  };
  (touch(d, N), ...);
}

/// Stores registers [first, first + n) of x where tcgen05_load would find them. Done behind tcgen05_wait_stores().
template <int n, int N>
OCTAVO_DEVICE void tcgen05_store(tensor_address to, const std::uint32_t (&x)[N], int first) {
  constexpr int step = n < 32 ? n : 32;
  static_assert(n > 0 && n % step == 0 && (step & (step - 1)) == 0, "n is 1, 2, 4, 8, 16 or a multiple of 32");
  OCTAVO_UNROLL
  for (int i = 0; i < n; i += step) detail::store_columns<step>(to.column(i), x + first + i);
}
template <int n, int N>
OCTAVO_DEVICE void tcgen05_store(tensor_address to, const float (&x)[N], int first) {
  std::uint32_t bits[n];
  OCTAVO_UNROLL
  for (int i = 0; i < n; ++i) bits[i] = __float_as_uint(x[first + i]);
  tcgen05_store<n>(to, bits, 0);
}
template <class T, int N>
OCTAVO_DEVICE void tcgen05_store(tensor_address to, const T (&x)[N]) {
  tcgen05_store<N>(to, x, 0);
}
/// Waits for all stores of the calling warp.
OCTAVO_DEVICE void tcgen05_wait_stores() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
#endif
