// SPDX-License-Identifier: Apache-2.0
// A run whose results must also be right, by the rules of the conformance suite.
#pragma once

#include "conformance/judge.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

namespace octavo_tests {

/// Runs c and compares it with R8. (The reference backend is R8: of itself it is asked only to be finite.) Every result
/// but LSE, which is -inf in rows without keys, must be finite: inputs here are.
inline results judged(const candidate& on, const test_case& c, const storage& how = {},
                      input_family family = input_family::randn) {
  const results got = on(c, how);
  CHECK(all_finite(got.o));
  CHECK(all_finite(got.dq));
  CHECK(all_finite(got.dk));
  CHECK(all_finite(got.dv));
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  if (reference && reference->compiled && on.backend.name != "reference") {
    truth known(*reference, c, how);
    for (const std::string& complaint : judge::on(on.backend, on.engine, c, family, got, known)) FAIL_CHECK(complaint);
  }
  return got;
}

}  // namespace octavo_tests
