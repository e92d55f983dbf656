// SPDX-License-Identifier: Apache-2.0
// Who computes a problem. A property test states what holds for any engine and visits all that claim the problem; who
// does not is logged with its reason, and a test that visited nobody counts as skipped, never as passed.
#pragma once

#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/run.hpp"
#include "support/units.hpp"

namespace octavo_tests {

/// Which engines a test is about.
struct selection {
  std::vector<std::string_view> recipes{"mx32", "token", "tile", "bf16"};
  std::vector<std::string_view> deltas{"stale", "matched", "consistent"};
  bool e5m2_gradients = false;
};

/// One engine of one backend that can run here.
struct candidate {
  const octavo::backend_entry& backend;
  const octavo::engine& engine;

  std::string name() const {
    return std::string(backend.name) + ", " + std::string(engine.recipe) + ", " + std::string(engine.delta);
  }
  bool is(std::string_view recipe) const { return engine.recipe == recipe; }
  bool reads_o() const { return engine.delta != "matched"; }
  /// A device on the host: every run of the same seed is the same, and each takes long.
  bool is_simulated() const { return backend.name.starts_with("sim-"); }

  /// Results of a run that must succeed and leave everything alone that is not its own.
  results operator()(const test_case& c, const storage& how = {}) const {
    results r = run(backend, engine, c, how);
    if (!r.status.ok()) FAIL_CHECK(std::string(r.status.message.view()));
    for (const std::string& v : r.violations) FAIL_CHECK(v);
    return r;
  }
};

namespace sweep_detail {

inline bool exists_at_all(std::string_view recipe, std::string_view delta) {
  return delta != "consistent" || (recipe != "bf16" && recipe != "tensor");  // it needs power-of-two scales
}

}  // namespace sweep_detail

/// Calls visit(candidate) for every selected engine that computes p.
template <class Visit>
void for_each_engine(const octavo::problem& p, const selection& which, const Visit& visit) {
  int visited = 0;
  std::set<std::string> refusals;
  for (const octavo::backend_entry& entry : octavo::all_backends()) {
    if (!entry.compiled || !entry.unavailable().empty()) continue;
    for (const std::string_view recipe : which.recipes) {
      for (const std::string_view delta : which.deltas) {
        if (!sweep_detail::exists_at_all(recipe, delta)) continue;
        const octavo::engine* e = entry.find(recipe, delta, which.e5m2_gradients);
        if (!e) {
          refusals.insert(std::string(entry.name) + " has no engine for " + std::string(recipe));
        } else if (const octavo::support s = e->supports(p); !s) {
          refusals.insert(std::string(entry.name) + ": " + s.reason.c_str());
        } else {
          const candidate on{entry, *e};
          INFO(on.name());
          visit(on);
          ++visited;
        }
      }
    }
  }
  for (const std::string& refusal : refusals) MESSAGE("not computed: " << refusal);
  if (visited == 0) MESSAGE("skipped: no backend that runs here computes this problem");
}

/// Whether the results of p there come from sums that keep fewer bits than FP32.
inline bool truncates(const candidate& on, const octavo::problem& p) { return truncates(on.backend, on.engine, p); }

/// How far sums of the same terms in another order may be apart, relative to their norm: FP32 on most units, the
/// tolerance of the contract on those that truncate.
inline double order_of_sums(const candidate& on, const octavo::problem& p) { return truncates(on, p) ? 2e-2 : 1e-5; }

/// The results of exact attention, from the reference backend; nothing where that is not compiled.
inline const octavo::engine* exact_engine() {
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  return reference && reference->compiled ? reference->find("exact", "matched", false) : nullptr;
}
inline results exact(const test_case& c) {
  test_case plain = c;  // the options that are about rounding do not concern it
  plain.p.key_centring = octavo::key_centring::off, plain.key_shift.clear();
  plain.p.o_residual = false;
  const octavo::engine* e = exact_engine();
  REQUIRE_MESSAGE(e != nullptr, "the reference backend, which knows the truth, is not compiled");
  return candidate{*find_backend(octavo::all_backends(), "reference"), *e}(plain, {.o_in_f32 = true});
}

}  // namespace octavo_tests
