// SPDX-License-Identifier: Apache-2.0
// Quantiles of Student's t distribution, for comparing the means of a few runs.
#pragma once

namespace train_lm {

/// t with P(T <= t) = .975. Between rows the next smaller number of degrees of freedom is taken, which asks for more.
/// Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, "Critical Values of the Student's t
/// Distribution", column 0.975. The degrees of freedom of two equal samples are even.
constexpr double student_t_975(int degrees_of_freedom) {
  struct entry {
    int degrees_of_freedom;
    double t;
  };
  constexpr entry table[] = {{2, 4.303},  {4, 2.776},  {6, 2.447},  {8, 2.306},  {10, 2.228}, {12, 2.179},
                             {14, 2.145}, {16, 2.120}, {18, 2.101}, {20, 2.086}, {22, 2.074}, {24, 2.064},
                             {26, 2.056}, {28, 2.048}, {30, 2.042}, {40, 2.021}, {60, 2.000}, {100, 1.984}};
  double t = 12.706;  // one degree of freedom
  for (const entry& e : table)
    if (e.degrees_of_freedom <= degrees_of_freedom) t = e.t;
  return t;
}

static_assert(student_t_975(2) == 4.303 && student_t_975(50) == 2.021);

}  // namespace train_lm
