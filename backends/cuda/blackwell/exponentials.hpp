// SPDX-License-Identifier: Apache-2.0
// 2^x of the forward and the delta pass, on two kinds of units. The ones for special functions give 16 a clock and
// multiprocessor, and are what both are short of on sm_100; so a quarter are polynomials on the FMA units, which have
// time for about as many. The two differ in their last bits, and a weight beside a tie of E4M3 then goes to one neighbour
// or the other: no loss, but the backward of `consistent` would have to do the same for the same keys, where they are no
// gain (README.md). Its forward has EX2 alone.
#pragma once

#include <octavo/backends/cuda/common/scores.hpp>
#include <octavo/backends/cuda/ptx/pairs.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::blackwell {

using cuda_common::functions;

/// 2^x of two numbers up to 127, to 2e-7 of their value; 0 for -127 and below, and no more than 2^-126 from it up to
/// -126; NaN for NaN and for infinity.
OCTAVO_DEVICE void exp2_by_polynomial(float& low, float& high) {
  using ptx::pair;
  // x = n + f, n whole and |f| <= 1/2. Adding this number leaves n in the lowest bits.
  constexpr float whole = 0x1.8p23f;
  // 2^f = 1 + c1 f + ... + c5 f^5, least largest relative error (9.1e-8) for |f| <= 1/2 with 2^0 = 1: by Lawson's
  // reweighted least squares on 1501 Chebyshev points. (A degree less, 2.8e-6, tips a weight in 10^5 into its neighbour.)
  constexpr float c1 = 0x1.62e42ap-1f, c2 = 0x1.ebf9bcp-3f, c3 = 0x1.c6b752p-5f, c4 = 0x1.3cea88p-7f;
  constexpr float c5 = 0x1.5bba14p-10f;
  const pair x{ptx::larger_or_nan(low, -127), ptx::larger_or_nan(high, -127)};
  const pair moved = ptx::add(x, pair::both(whole));
  const pair n = ptx::add(moved, pair::both(-whole));
  const pair f = ptx::multiply_add(n, pair::both(-1), x);
  pair p = ptx::multiply_add(f, pair::both(c5), pair::both(c4));
  p = ptx::multiply_add(p, f, pair::both(c3));
  p = ptx::multiply_add(p, f, pair::both(c2));
  p = ptx::multiply_add(p, f, pair::both(c1));
  p = ptx::multiply_add(p, f, pair::both(1));
  // n joins the exponent. At -127, where f is 0, that leaves no bit.
  const auto scaled = [](float y, float with_n) {
    return detail::bit_cast<float>(detail::bit_cast<std::uint32_t>(y) +
                                   (detail::bit_cast<std::uint32_t>(with_n) << 23));
  };
  low = scaled(p.low, moved.low), high = scaled(p.high, moved.high);
}

/// 2^x of every element; a quarter of them by polynomials, or none.
template <bool some_by_polynomial, int N>
OCTAVO_DEVICE void exponentials(float (&x)[N]) {
  static_assert(N % 16 == 0);
  OCTAVO_UNROLL
  for (int i = 0; i < N; i += 2) {
    if (some_by_polynomial && i / 4 % 4 == 3) {
      exp2_by_polynomial(x[i], x[i + 1]);
    } else {
      x[i] = functions::exp2(x[i]);
      x[i + 1] = functions::exp2(x[i + 1]);
    }
  }
}

}  // namespace backends::blackwell
OCTAVO_END_NAMESPACE
