// SPDX-License-Identifier: Apache-2.0
// Per-row terms of the backward as its loops read them: tile by tile beside the images of Q and dO, so that a copy
// brings those of 128 rows.
//
//     exponent   matched, stale: M + log2 n (log2 l), so that P = 2^(s - exponent) needs no product; consistent: M
//     weight     consistent: 1 / (256 l), what the forward's rounded P is multiplied by; else 1
//     shift      c
//     delta      delta - c
//
// Where M is large, its sum with log2 n would lose digits: the exponent is then M and the weight 1 / n, and `special` says
// that there is such a row.
//
// A row without keys, or beyond the document's last, has the exponent +inf: all its P are 0.
#pragma once

#include <octavo/algorithm/softmax.hpp>
#include <octavo/backends/simt/qualifiers.hpp>
#include <octavo/backends/simt/schedule.hpp>

#include <cmath>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

struct row_term_tile {
  float exponent[tile_tokens], shift[tile_tokens], delta[tile_tokens], weight[tile_tokens];
  std::uint32_t nonfinite[4];  ///< bits of the rows whose delta is not finite
  std::uint32_t special[4];    ///< bits of the rows whose M is large

  /// M + log2 n is off by 2^-12 at most below it, where P is rounded to 2^-4.
  static constexpr float largest_sum = 4096;
  OCTAVO_DEVICE static bool is_special(float m) { return !(fabsf(m) <= largest_sum); }

  /// sum: n or l, 0 for a row without keys. E: the element of P.
  template <class Delta, class E>
  OCTAVO_DEVICE void set(int row, float m, float sum, float c, float delta_beyond_c) {
    const float reciprocal = reciprocal_or_zero(sum);
    const bool weighs = is_special(m) && !Delta::reuses_forward_p;
    exponent[row] = sum == 0 ? detail::float_infinity() : Delta::reuses_forward_p || weighs ? m : m + std::log2(sum);
    weight[row] = Delta::reuses_forward_p ? reciprocal * (1.0f / p_scale<E>) : weighs ? reciprocal : 1.0f;
    shift[row] = c;
    delta[row] = delta_beyond_c;
  }
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
