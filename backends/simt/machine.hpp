// SPDX-License-Identifier: Apache-2.0
// The machine that a lane-level kernel runs on: a type M of constants and static functions, so that one program can hold
// several (the host runs all of them, each instruction modelled by backends/sim). The kernels of this folder name nothing
// else of CUDA or HIP.
//
//     constants
//       lanes                     of a warp (NVIDIA 32) or wave (CDNA 64)
//       shared_bytes              that a block may have (NVIDIA 99 KB on sm_89 and sm_120, 227 KB on sm_90; CDNA3 64 KB)
//       computes<Recipe>          whether the atoms compute a recipe natively
//       plan(work, d, recipe)     how a kernel is cut (schedule.hpp)
//       atom<L, R>                the matrix instruction for operands of elements L and R (atom.hpp)
//
//     who and where
//       thread_index(), block_index()
//       shared()                  the block's dynamic shared memory, char*, aligned to 16 bytes at least
//       unknown_zero()            0, which the compiler does not know; only for plans that keep rows in local memory
//
//     waiting
//       sync_block()              all threads of the block; what they wrote before is visible after
//       sync_warp()               the same for the lanes of a warp
//
//     lanes of a warp, all of them together
//       shuffle_xor(x, mask)      x of lane (mine ^ mask); float and std::uint32_t
//       any_in_warp(bool)
//
//     from global to shared memory
//       transfer<n>               n pieces of 16 bytes of this thread, a stage's worth:
//                                     start(i, to, from)  begins with piece i < n, constant after unrolling; a thread
//                                                         need not start every i
//                                     deliver()           after it the pieces arrive without the thread's help
//                                 (NVIDIA: cp.async, and the group is closed; CDNA3: start loads registers, deliver
//                                 stores them, so a kernel calls start before its arithmetic and deliver after it)
//       transfers_hold_registers  whether started pieces wait in registers, as on CDNA3
//       wait_transfers<n>()       until at most the n youngest delivered transfers of this thread are under way;
//                                 sync_block then makes them visible to the others
//
//     arithmetic
//       exp2(x)                   2^x to about 2^-22; results below 2^-126 may be 0
//       tanh(x)
//       multiply(a, b)            rounded: never fused with an addition
//       larger_or_nan(a, b)       the larger, or NaN if one is
//       pack_bf16(a, b), pack_f16(a, b), unpack_f16(word, a&, b&)     the first in the lower half
//       permute_bytes(low, high, selectors)                           byte i is byte (selectors >> 4 i & 7) of {low, high}
//
//     FP8, in the bytes that the atoms read ("operand bytes": OCP codes, or FNUZ codes that mean the same up to atom::unit)
//       pack<E>(a, b, c, d)       rounded to E's OCP values, nearest even, NaN kept; the first in the lowest byte. Magnitudes
//                                 are E::max at most, up to its rounding: scales are rounded up, so nothing saturates
//       unpack<E>(word, x[4])     their OCP values
//       payload<E>(a, b, c, d)    OCP codes, rounded as by pack (NVIDIA: pack itself)
//       operand_bytes<E>(word)    operand bytes of four OCP codes (NVIDIA: the word itself)
//       is_weight(byte)           whether an operand byte is a number other than 0, or NaN
//
//     memory
//       atomic_or(std::uint32_t*, bits)      shared or global; order of nothing else
//
// static_assert(require_machine<M>::value) says what is missing.
#pragma once

#include <octavo/backends/simt/atom.hpp>
#include <octavo/backends/simt/schedule.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/scaling/recipe.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M>
concept HasPlace = requires {
  { M::lanes } -> std::convertible_to<int>;
  { M::shared_bytes } -> std::convertible_to<int>;
  { M::template computes<recipe::tile> } -> std::convertible_to<bool>;
  { M::plan(work::forward, 64, recipe::granularity::tile128) } -> std::same_as<schedule>;
  { M::thread_index() } -> std::same_as<int>;
  { M::block_index() } -> std::same_as<std::int64_t>;
  { M::shared() } -> std::same_as<char*>;
};
template <class M>
concept HasWarp = requires(float x, std::uint32_t bits) {
  M::sync_block();
  M::sync_warp();
  { M::shuffle_xor(x, 1) } -> std::same_as<float>;
  { M::shuffle_xor(bits, 1) } -> std::same_as<std::uint32_t>;
  { M::any_in_warp(true) } -> std::same_as<bool>;
};
template <class M>
concept HasTransfer = requires(typename M::template transfer<2>& t, void* to, const void* from) {
  t.start(0, to, from);
  t.deliver();
  M::template wait_transfers<1>();
  { M::transfers_hold_registers } -> std::convertible_to<bool>;
};
template <class M>
concept HasArithmetic = requires(float x, float& y, std::uint32_t bits) {
  { M::exp2(x) } -> std::same_as<float>;
  { M::tanh(x) } -> std::same_as<float>;
  { M::multiply(x, x) } -> std::same_as<float>;
  { M::larger_or_nan(x, x) } -> std::same_as<float>;
  { M::pack_bf16(x, x) } -> std::same_as<std::uint32_t>;
  { M::pack_f16(x, x) } -> std::same_as<std::uint32_t>;
  M::unpack_f16(bits, y, y);
  { M::permute_bytes(bits, bits, bits) } -> std::same_as<std::uint32_t>;
};
template <class M>
concept HasFloat8 = requires(float x, float (&four)[4], std::uint32_t bits, std::uint32_t* to) {
  { M::template pack<e4m3>(x, x, x, x) } -> std::same_as<std::uint32_t>;
  { M::template pack<e5m2>(x, x, x, x) } -> std::same_as<std::uint32_t>;
  { M::template payload<e4m3>(x, x, x, x) } -> std::same_as<std::uint32_t>;
  { M::template payload<e5m2>(x, x, x, x) } -> std::same_as<std::uint32_t>;
  M::template unpack<e4m3>(bits, four);
  { M::template operand_bytes<e4m3>(bits) } -> std::same_as<std::uint32_t>;
  { M::is_weight(bits) } -> std::same_as<bool>;
  M::atomic_or(to, bits);
};
template <class M>
concept HasAtoms = Atom<typename M::template atom<e4m3, e4m3>> && Atom<typename M::template atom<e5m2, e4m3>> &&
                   Atom<typename M::template atom<e4m3, e5m2>>;

template <class M>
concept Machine = HasPlace<M> && HasWarp<M> && HasTransfer<M> && HasArithmetic<M> && HasFloat8<M> && HasAtoms<M>;

/// Every machine ends with static_assert(require_machine<me>::value): one assert per group, because nvcc prints nothing
/// of a failed concept but the text of the assert.
template <class M>
struct require_machine {
  static_assert(HasPlace<M>,
                "Machine: lanes, shared_bytes, computes, plan, thread_index, block_index or shared is missing");
  static_assert(HasWarp<M>, "Machine: sync_block, sync_warp, shuffle_xor or any_in_warp is missing");
  static_assert(
      HasTransfer<M>,
      "Machine: transfer<n> with start(i, to, from) and deliver(), wait_transfers<n>, or transfers_hold_registers");
  static_assert(
      HasArithmetic<M>,
      "Machine: exp2, tanh, multiply, larger_or_nan, pack_bf16, pack_f16, unpack_f16 or permute_bytes is missing");
  static_assert(HasFloat8<M>, "Machine: pack, payload, unpack, operand_bytes, is_weight or atomic_or is missing");
  static_assert(HasAtoms<M>, "Machine: atom<L, R> for e4m3 and e5m2 is missing or no Atom");
  using atom_layout = layout<typename M::template atom<e4m3, e4m3>, M::lanes>;
  static_assert(atom_layout::row_slots > 0, "Machine: the atom's layout is not sound");
  static_assert(!M::template computes<recipe::mx32> || atom_layout::scales_accumulators(),
                "Machine: to compute mx32 an atom has to take scales of blocks in which accumulators stay together");
  static constexpr bool value = Machine<M>;
};

/// The functions that the shared formulas of algorithm/ ask of a backend.
template <class M>
struct functions {
  static OCTAVO_DEVICE float exp2(float x) { return M::exp2(x); }
  static OCTAVO_DEVICE float tanh(float x) { return M::tanh(x); }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
