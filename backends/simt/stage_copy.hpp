// SPDX-License-Identifier: Apache-2.0
// Brings what a stage holds from global to shared memory, each thread of the block its share of pieces of 16 bytes.
#pragma once

#include <octavo/backends/simt/machine.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Pieces of a thread, for `bytes` bytes that `threads` threads share.
OCTAVO_HD constexpr int pieces_of_thread(int bytes, int threads) { return (bytes / 16 + threads - 1) / threads; }

/// Starts the pieces of one array: transfer's pieces from number `first` on.
template <class M, int threads, int bytes, int first, class Transfer>
OCTAVO_DEVICE void start_copy(Transfer& transfer, void* to, const void* from) {
  static_assert(bytes % 16 == 0, "a copy is whole pieces");
  constexpr int pieces = bytes / 16;
  OCTAVO_UNROLL
  for (int i = 0; i < pieces_of_thread(bytes, threads); ++i) {
    const int at = M::thread_index() + i * threads;
    if (pieces % threads == 0 || at < pieces)
      transfer.start(first + i, static_cast<char*>(to) + 16 * at, static_cast<const char*>(from) + 16 * at);
  }
}

/// A list of arrays of constant sizes, started one after another.
template <class M, int threads, int... bytes>
struct stage_copy {
  static constexpr int pieces = (pieces_of_thread(bytes, threads) + ... + 0);
  using transfer = typename M::template transfer<pieces>;

  template <class... Pairs>
  OCTAVO_DEVICE static void start(transfer& t, Pairs... pairs) {
    static_assert(sizeof...(Pairs) == sizeof...(bytes));
    start_from<0, bytes...>(t, pairs...);
  }

 private:
  template <int first>
  OCTAVO_DEVICE static void start_from(transfer&) {}
  template <int first, int bytes_here, int... rest, class Pair, class... Pairs>
  OCTAVO_DEVICE static void start_from(transfer& t, Pair pair, Pairs... pairs) {
    start_copy<M, threads, bytes_here, first>(t, pair.to, pair.from);
    start_from<first + pieces_of_thread(bytes_here, threads), rest...>(t, pairs...);
  }
};
struct copy_pair {
  void* to;
  const void* from;
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
