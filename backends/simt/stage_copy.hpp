// SPDX-License-Identifier: Apache-2.0
// Brings what a stage holds from global to shared memory, each thread of the block its share of pieces of 16 bytes.
#pragma once

#include <octavo/backends/simt/machine.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// One array of a stage.
struct copy_pair {
  void* to;
  const void* from;
};

/// Arrays of constant sizes, of whose pieces a thread brings every threads-th. Where transfers hold pieces in registers,
/// they are one list: an array begins where the one before it ends, so that small ones share a round of the threads and with
/// it the registers. Where they do not, each begins with a round of its own, which leaves less to ask.
template <class M, int threads, int... bytes>
struct stage_copy {
  static_assert(((bytes % 16 == 0) && ...), "a copy is whole pieces");
  static constexpr bool in_one_list = M::transfers_hold_registers;
  /// Rounds of the threads that n pieces take.
  OCTAVO_HD static constexpr int rounds(int n) { return (n + threads - 1) / threads; }
  static constexpr int pieces = in_one_list ? rounds(((bytes / 16) + ... + 0)) : (rounds(bytes / 16) + ... + 0);
  using transfer = typename M::template transfer<pieces>;

  /// pairs: the arrays, in the order of `bytes`.
  template <class... Pairs>
  OCTAVO_DEVICE static void start(transfer& t, const Pairs&... pairs) {
    static_assert(sizeof...(Pairs) == sizeof...(bytes));
    if constexpr (in_one_list) {
      OCTAVO_UNROLL
      for (int i = 0; i < pieces; ++i) {
        const int at = M::thread_index() + i * threads;
        copy_pair piece{nullptr, nullptr};
        int first = 0;
        bool found = false;
        ((found |= find(piece, pairs, at, i * threads, first, bytes / 16), first += bytes / 16), ...);
        if (found) t.start(i, piece.to, piece.from);
      }
    } else {
      int first = 0;
      ((start_array<bytes / 16>(t, pairs, first), first += rounds(bytes / 16)), ...);
    }
  }

 private:
  /// Piece `at` of the list, if it is one of the n from number `first` on. Threads ask for [round, round + threads): what
  /// is asked of the constants among these is decided when compiled.
  OCTAVO_DEVICE static bool find(copy_pair& piece, const copy_pair& of, int at, int round, int first, int n) {
    if (first >= round + threads || first + n <= round) return false;
    if ((first > round && at < first) || (first + n < round + threads && at >= first + n)) return false;
    piece = {static_cast<char*>(of.to) + 16 * (at - first), static_cast<const char*>(of.from) + 16 * (at - first)};
    return true;
  }
  /// An array of n pieces: the transfer's pieces from number `first` on.
  template <int n>
  OCTAVO_DEVICE static void start_array(transfer& t, const copy_pair& of, int first) {
    OCTAVO_UNROLL
    for (int i = 0; i < rounds(n); ++i) {
      const int at = M::thread_index() + i * threads;
      if (n % threads == 0 || at < n)
        t.start(first + i, static_cast<char*>(of.to) + 16 * at, static_cast<const char*>(of.from) + 16 * at);
    }
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
