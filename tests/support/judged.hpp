// SPDX-License-Identifier: Apache-2.0
// A run whose results must also be right: by the rules of the conformance suite, or, where an input amplifies a single
// flipped rounding beyond their tolerance, as close to the truth as R8 is.
#pragma once

#include "conformance/judge.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

namespace octavo_tests {

/// A run of finite inputs: every result but LSE, which is -inf in rows without keys, must be finite.
inline results finite_run(const candidate& on, const test_case& c, const storage& how = {}) {
  const results got = on(c, how);
  CHECK(all_finite(got.o));
  CHECK(all_finite(got.dq));
  CHECK(all_finite(got.dk));
  CHECK(all_finite(got.dv));
  return got;
}

/// Runs c and compares it with R8. (The reference backend is R8: of itself it is asked only to be finite.)
inline results judged(const candidate& on, const test_case& c, const storage& how = {},
                      input_family family = input_family::randn) {
  const results got = finite_run(on, c, how);
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  if (reference && reference->compiled && on.backend.name != "reference") {
    truth known(*reference, c, how);
    for (const std::string& complaint : judge::on(on.backend, on.engine, c, family, got, known)) FAIL_CHECK(complaint);
  }
  return got;
}

/// What R8 makes of c, with the recipe and the delta of a candidate.
inline results r8_of(const candidate& on, const test_case& c) {
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  REQUIRE(reference != nullptr);
  const octavo::engine* engine = reference->find(on.engine.recipe, on.engine.delta, on.engine.e5m2_gradients);
  REQUIRE(engine != nullptr);
  return run(*reference, *engine, c);
}

/// Runs c and compares its error against R64 with that of R8: at most 1.1 of it and 2e-3, the rule for units whose sums
/// are not R8's. LSE on the mean: a flipped rounding of P moves it by up to .06 in a row of one key. truth: exact(c),
/// which one sweep needs only once.
inline results as_accurate_as_r8(const candidate& on, const test_case& c, const results& truth) {
  const results got = finite_run(on, c), r8 = r8_of(on, c);
  // Scores far from zero lose digits where sums are cut, and weights are then off by as much.
  double largest_score = 0;
  for (const float lse : truth.lse)
    if (std::isfinite(lse)) largest_score = std::max(largest_score, std::fabs(double{lse}));
  const bool truncated = truncates(on, c.p);
  const double cut = truncated ? truncation_of_weights(c.p, largest_score) : 0;
  // Weights that move between two roundings make our error and R8's two draws of as many rounding errors as there are
  // rows: their norms differ by a standard deviation of one in sqrt(rows).
  const double draws = truncated ? 1 / std::sqrt(static_cast<double>(truth.lse.size())) : 0;
  const auto check = [&](const char* name, floats results::* field, const floats& other_factor) {
    CAPTURE(name);
    if (norm(truth.*field) <= 1e-6 * norm(c.dout) * norm(c.v) * norm(other_factor))
      return;  // nothing to be relative to
    CHECK(relative_error(got.*field, truth.*field) <=
          (1.1 + draws) * relative_error(r8.*field, truth.*field) + 2e-3 + cut);
  };
  check("O", &results::o, {});
  check("dQ", &results::dq, c.k);
  check("dK", &results::dk, c.q);
  check("dV", &results::dv, {});
  double lse_distance = 0;
  for (std::size_t i = 0; i < r8.lse.size(); ++i)
    if (got.lse[i] != r8.lse[i]) lse_distance += std::fabs(double{got.lse[i]} - r8.lse[i]);
  CHECK(lse_distance <= (1e-3 + cut) * static_cast<double>(r8.lse.size()));
  return got;
}

}  // namespace octavo_tests
