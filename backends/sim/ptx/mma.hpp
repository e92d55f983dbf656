// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/mma.hpp on the host.
#pragma once

#include <octavo/backends/sim/collective.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/backends/sim/warp_product.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

namespace detail {

/// What a lane brings to the product.
struct mma_operands {
  const std::uint32_t* a;
  std::uint32_t b[2];
  float* d[4];
};

template <class E>
float element(std::uint32_t word, int byte) {
  return E::decode(static_cast<std::uint8_t>(word >> 8 * byte));
}

/// The last lane to come computes for all.
template <class L, class R>
void mma_of_warp(const sim::contribution* given, int lanes) {
  float a[16][32], b[8][32];
  for (int lane = 0; lane < lanes; ++lane) {
    const auto& x = *reinterpret_cast<const mma_operands*>(given[lane].row);
    const int g = lane / 4, q = lane % 4;
    for (int byte = 0; byte < 4; ++byte) {
      for (int w = 0; w < 4; ++w) a[g + 8 * (w % 2)][4 * q + 16 * (w / 2) + byte] = element<L>(x.a[w], byte);
      for (int w = 0; w < 2; ++w) b[g][4 * q + 16 * w + byte] = element<R>(x.b[w], byte);
    }
  }
  const sim::options& how = sim::active_machine()->options;
  for (int lane = 0; lane < lanes; ++lane) {
    const auto& x = *reinterpret_cast<const mma_operands*>(given[lane].row);
    for (int i = 0; i < 4; ++i)
      *x.d[i] = sim::warp_product(a[lane / 4 + 8 * (i / 2)], b[2 * (lane % 4) + i % 2], *x.d[i], how.accumulator,
                                  how.mma_fraction_bits);
  }
  ++sim::active_machine()->report.products;
  ++sim::active_machine()->report.matrix_instructions["mma m16n8k32"];
}

}  // namespace detail

template <class L, class R>
void mma(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
         const sim::site where = sim::site::current()) {
  detail::mma_operands mine{a, {b0, b1}, {&d0, &d1, &d2, &d3}};
  sim::meet(sim::collective_kind::together, 0, 0,
            {.row = reinterpret_cast<char*>(&mine), .together = &detail::mma_of_warp<L, R>}, where);
}
/// What a unit without FP8 products converts comes as it is: the values are the same.
template <class L>
void convert_left(const std::uint32_t (&a)[4], std::uint32_t (&to)[8]) {
  for (int i = 0; i < 4; ++i) to[i] = a[i], to[4 + i] = 0;
}
template <class L, class R>
void mma_converted(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[8], std::uint32_t b0,
                   std::uint32_t b1, const sim::site where = sim::site::current()) {
  const std::uint32_t as_it_is[4] = {a[0], a[1], a[2], a[3]};
  mma<L, R>(d0, d1, d2, d3, as_it_is, b0, b1, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
