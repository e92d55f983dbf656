// SPDX-License-Identifier: Apache-2.0
// N floats that one thread adds and multiplies together: a vector register on a host, a plain float on a device.
#pragma once

#include <octavo/backends/kokkos/version.hpp>

#include <cstring>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

// GNU vectors where they exist, because a block of plain arrays is kept in registers by some compilers and some widths
// only. Kokkos' own vectors came after 3.4.
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
template <int N>
struct lanes_of {
  using type [[gnu::vector_size(N * sizeof(float))]] = float;
};
#else
template <int N>
struct lanes_of {
  struct type {
    float lane[N];
    KOKKOS_FUNCTION friend type operator*(float a, const type& b) {
      type x;
      for (int i = 0; i < N; ++i) x.lane[i] = a * b.lane[i];
      return x;
    }
    KOKKOS_FUNCTION type& operator+=(const type& b) {
      for (int i = 0; i < N; ++i) lane[i] += b.lane[i];
      return *this;
    }
  };
};
#endif
template <>
struct lanes_of<1> {
  using type = float;
};

/// Loads and stores ask for no alignment beyond a float's.
template <int N>
KOKKOS_FUNCTION typename lanes_of<N>::type load_lanes(const float* from) {
  typename lanes_of<N>::type x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class Lanes>
KOKKOS_FUNCTION void store_lanes(float* to, const Lanes& x) {
  std::memcpy(to, &x, sizeof x);
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
