// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/mma_scaled.hpp on the host. Sums are exact and rounded once: no model of sm_120's is public.
#pragma once

#include <octavo/backends/sim/ptx/mma.hpp>
#include <octavo/config.hpp>
#include <octavo/numeric/e8m0.hpp>

#include <cmath>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

namespace detail {

struct scaled_operands : mma_operands {
  std::uint8_t a_scale, b_scale;
  int from;
};

inline double scale_value(std::uint8_t bits) {
  return e8m0{bits}.is_nan() ? std::nan("") : std::ldexp(1.0, int{bits} - e8m0::bias);
}

inline void mma_scaled_of_warp(const sim::contribution* given, int lanes) {
  double a[16][32], b[8][32];
  const auto of = [&](int lane) -> const scaled_operands& {
    return *reinterpret_cast<const scaled_operands*>(given[lane].row);
  };
  for (int lane = 0; lane < lanes; ++lane) {
    const scaled_operands& x = of(lane);
    const int g = lane / 4, q = lane % 4;
    const double b_scale = scale_value(of(4 * g + x.from).b_scale);
    for (int byte = 0; byte < 4; ++byte) {
      for (int w = 0; w < 4; ++w)
        a[g + 8 * (w % 2)][4 * q + 16 * (w / 2) + byte] =
            element<e4m3>(x.a[w], byte) * scale_value(of(4 * g + w % 2).a_scale);
      for (int w = 0; w < 2; ++w) b[g][4 * q + 16 * w + byte] = element<e4m3>(x.b[w], byte) * b_scale;
    }
  }
  for (int lane = 0; lane < lanes; ++lane)
    for (int i = 0; i < 4; ++i) {
      double sum = 0;  // exact: one scale on each side
      for (int k = 0; k < 32; ++k) sum += a[lane / 4 + 8 * (i / 2)][k] * b[2 * (lane % 4) + i % 2][k];
      float& d = *of(lane).d[i];
      d = std::isnan(sum) || std::isnan(d) ? octavo::detail::float_nan() : sim::detail::add_once(sum, d);
    }
  ++sim::active_machine()->report.products;
  ++sim::active_machine()->report.matrix_instructions["mma m16n8k32 mxf8f6f4"];
}

}  // namespace detail

template <int from>
void mma_scaled(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                std::uint32_t b1, std::uint32_t a_scale, std::uint32_t b_scale,
                const sim::site where = sim::site::current()) {
  detail::scaled_operands mine{{a, {b0, b1}, {&d0, &d1, &d2, &d3}},
                               static_cast<std::uint8_t>(a_scale),
                               static_cast<std::uint8_t>(b_scale),
                               from};
  sim::meet(sim::collective_kind::together, from, 1,
            {.row = reinterpret_cast<char*>(&mine), .together = &detail::mma_scaled_of_warp}, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
