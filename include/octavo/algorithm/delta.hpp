// SPDX-License-Identifier: Apache-2.0
// The delta policies: which P the backward uses and what delta_i it subtracts from dP in dS_ij = P_ij (dP_ij -
// delta_i).
//
// Softmax does not change when a row of S is shifted, so sum_j dS_ij = 0. That holds in low precision only if delta is
// made of the very P and dP that it is subtracted from:
//
//     policy       P in the backward          delta_i                                      reads O   extra products
//     stale        2^(s-M)/l, unrounded       dO_i . O_i                                   yes       none
//     matched      2^(s-M)/n, unrounded       sum_j 2^(s-M) dP_ij / n_i, n_i = sum 2^(s-M) no        S and dP once more
//     consistent   the forward's rounded P/l  dO^_i . O_i                                  yes       none
//
// stale is what FlashAttention does and the baseline here. matched is the default. consistent needs power-of-two
// scales.
#pragma once

#include <octavo/config.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE

namespace delta {

struct stale {
  static constexpr const char* name = "stale";
  static constexpr bool integer_maximum =
      false;  ///< the forward's M is the true running maximum, its l sums unrounded P
  static constexpr bool reads_o = true;
  static constexpr bool reuses_forward_p = false;  ///< the backward's P is the forward's rounded one
};
struct matched {
  static constexpr const char* name = "matched";
  static constexpr bool integer_maximum = true;  ///< M = ceil(max): P rounds the same whatever the running maximum was
  static constexpr bool reads_o = false;
  static constexpr bool reuses_forward_p = false;
};
struct consistent {
  static constexpr const char* name = "consistent";
  static constexpr bool integer_maximum = true;
  static constexpr bool reads_o = true;
  static constexpr bool reuses_forward_p = true;
};

/// A forward knows two kinds of policy only: matched and consistent ask the same of it, and share one instantiation.
template <class Policy>
using of_forward = std::conditional_t<Policy::integer_maximum, matched, stale>;

}  // namespace delta

OCTAVO_END_NAMESPACE
