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

#include <octavo/backends/simt/schedule.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

struct row_term_tile {
  float exponent[tile_tokens], shift[tile_tokens], delta[tile_tokens], weight[tile_tokens];
  std::uint32_t nonfinite[4];  ///< bits of the rows whose delta is not finite
  std::uint32_t special[4];    ///< bits of the rows whose M is large
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
