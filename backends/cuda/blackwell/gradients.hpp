// SPDX-License-Identifier: Apache-2.0
// P and dS from raw products, for a thread's row of either orientation: rows that are queries (dQ) and rows that are keys
// (dK and dV). The same operations on the same pairs, so that both loops and the delta pass see the same bits.
#pragma once

#include <octavo/backends/cuda/blackwell/rows.hpp>
#include <octavo/backends/cuda/ptx/pairs.hpp>
#include <octavo/backends/simt/probabilities.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

/// What is out of the ordinary in a run of pairs, which the quick path does not look at.
struct pair_conditions {
  bool masked = false;   ///< the mask forbids some
  bool strange = false;  ///< dP or delta may not be finite
  bool special = false;  ///< a row has a large M (see row_term_tile)
};

/// s becomes P, dp becomes dS. Terms: exponent(i), weight(i), shift(i) and delta(i) of the query of element i (see
/// row_term_tile), allowed(i). see(ds, i): dS before the derivative of a softcap.
template <class Recipe, class Delta, int N, class Terms, class See>
OCTAVO_DEVICE void make_gradients(float (&s)[N], float (&dp)[N], const score_map<functions>& map, const Terms& terms,
                                  const pair_conditions& conditions, See see) {
  const auto exponent = [&](int i) { return terms.exponent(i); };
  const auto weight = [&](int i) { return terms.weight(i); };
  const auto no_fold = [](int) { return 0.0f; };
  if (map.softcap == 0 && !conditions.masked && !conditions.strange && !conditions.special) [[likely]] {
    simt::probabilities<functions, Recipe, Delta>(
        s, false, [&](int) { return map.scale_log2; }, exponent, weight, no_fold);
    OCTAVO_UNROLL
    for (int i = 0; i < N; i += 2) {
      const ptx::pair moved = ptx::subtract({dp[i], dp[i + 1]}, {terms.shift(i), terms.shift(i + 1)});
      const ptx::pair centred = ptx::subtract(moved, {terms.delta(i), terms.delta(i + 1)});
      const ptx::pair ds = ptx::multiply({s[i], s[i + 1]}, centred);
      dp[i] = ds.low, dp[i + 1] = ds.high;
      see(ds.low), see(ds.high);
    }
    return;
  }
  OCTAVO_UNROLL
  for (int first = 0; first < N; first += 4) {
    float p[4], score[4], factor[4], exponent_left[4];
    OCTAVO_UNROLL
    for (int e = 0; e < 4; ++e) {
      score[e] = s[first + e];
      if (map.softcap != 0) score[e] = map.capped(score[e] * map.scale_log2);
      p[e] = score[e];
      factor[e] = map.softcap != 0 ? 1.0f : map.scale_log2;
      exponent_left[e] = terms.exponent(first + e);
      if (!conditions.special || !is_large(exponent_left[e])) continue;
      // As the forward: rounded products, and M goes before the 8 of `consistent` comes.
      p[e] = ptx::multiply(p[e], factor[e]) - exponent_left[e];
      factor[e] = 1, exponent_left[e] = 0;
    }
    simt::probabilities<functions, Recipe, Delta>(
        p, conditions.special, [&](int e) { return factor[e]; }, [&](int e) { return exponent_left[e]; },
        [&](int e) { return terms.weight(first + e); }, no_fold);
    OCTAVO_UNROLL
    for (int e = 0; e < 4; ++e) {
      const int i = first + e;
      if (conditions.masked && !terms.allowed(i)) p[e] = 0;
      // A pair without weight has no gradient, whatever dP and delta are.
      float ds = p[e] == 0 ? 0.0f : p[e] * ((dp[i] - terms.shift(i)) - terms.delta(i));
      see(ds);
      if (map.softcap != 0) ds = weighted(ds, map.cap_derivative(score[e]));
      s[i] = p[e];
      dp[i] = ds;
    }
  }
}

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
