// SPDX-License-Identifier: Apache-2.0
// Every backend that runs here, every row of the table: computed and right, or refused as listed. A refusal is never a
// pass: each test prints how many results it judged.
#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "conformance/judge.hpp"
#include "conformance/refusals.hpp"
#include "conformance/table.hpp"

using namespace octavo_tests;

namespace {

/// The backends to judge: all that can run on this machine but the judge itself.
std::vector<const octavo::backend_entry*> candidates() {
  std::vector<const octavo::backend_entry*> out;
  for (const octavo::backend_entry& entry : octavo::all_backends())
    if (entry.name != "reference" && entry.compiled && entry.unavailable().empty()) out.push_back(&entry);
  return out;
}

std::string describe(const octavo::backend_entry& backend, const row& r, std::string_view recipe,
                     std::string_view delta) {
  return std::string(backend.name) + ", " + std::string(recipe) + ", " + std::string(delta) + ": " + r.name;
}

/// Why the backend does not compute this; empty when it does.
std::string refused_by(const octavo::backend_entry& backend, const row& r, std::string_view recipe,
                       std::string_view delta) {
  const octavo::engine* e = backend.find(recipe, delta, r.e5m2_gradients);
  if (!e) return std::string(no_engine);
  const octavo::support s = e->supports(r.p);
  return s ? std::string() : std::string(s.reason.view());
}

/// Backends without generic loops, and simulators, have engines for what their kernels compute and no others.
bool has_engines(const octavo::backend_entry& backend, std::string_view recipe, bool e5m2_gradients = false) {
  for (const std::span<const octavo::engine> list : backend.engines)
    for (const octavo::engine& e : list)
      if ((recipe.empty() || e.recipe == recipe) && e.e5m2_gradients == e5m2_gradients) return true;
  return false;
}
bool simulates(const octavo::backend_entry& backend) { return backend.name.substr(0, 4) == "sim-"; }

/// Calls visit(row, recipe) for every row and each of its recipes (or only one).
template <class Visit>
void for_each_combination(std::string_view only_recipe, const Visit& visit) {
  for (const row& r : table())
    for (const auto& [recipe, bit] : recipes)
      if ((r.with & bit) && (only_recipe.empty() || only_recipe == recipe)) visit(r, recipe);
}

struct count {
  int judged = 0, refused = 0;
};

/// The judge; null, and said to be so, where it is not compiled.
const octavo::backend_entry* compiled_reference() {
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  if (reference && reference->compiled) return reference;
  MESSAGE("skipped: the reference backend, which judges the others, is not compiled");
  return nullptr;
}

/// Judges the backends that `wanted` names over the table's rows of one recipe that it wants. Returns the families of
/// inputs of which something was judged.
template <class Wanted>
std::set<input_family> conform(std::string_view recipe_name, const Wanted& wanted) {
  const octavo::backend_entry* reference = compiled_reference();
  if (reference == nullptr) return {};
  std::set<input_family> families;
  std::map<std::string_view, count> counts;
  for_each_combination(recipe_name, [&](const row& r, std::string_view recipe) {
    if (!wanted.row(r)) return;
    test_case c = r.make();
    truth known(*reference, c, r.how);
    for (const char* delta : deltas) {
      for (const octavo::backend_entry* backend : candidates()) {
        if (!wanted.backend(*backend)) continue;
        if (!refused_by(*backend, r, recipe, delta).empty()) {
          ++counts[backend->name].refused;
          continue;
        }
        if (r.p.payload_inputs) c.payloads = make_payloads(*reference, c, recipe, delta, r.e5m2_gradients);
        const octavo::engine& e = *backend->find(recipe, delta, r.e5m2_gradients);
        const results got = run(*backend, e, c, r.how);
        for (const std::string& complaint : judge::on(*backend, e, c, r.inputs, got, known))
          FAIL_CHECK(describe(*backend, r, recipe, delta) << ": " << complaint);
        ++counts[backend->name].judged;
        families.insert(r.inputs);
      }
    }
  });
  for (const auto& [name, n] : counts) {
    if (!has_engines(*find_backend(octavo::all_backends(), name), recipe_name)) continue;
    MESSAGE(name << ", " << recipe_name << ": " << n.judged << " results judged, " << n.refused << " refused");
    CHECK(n.judged > 0);
  }
  return families;
}

struct everything {
  static bool row(const octavo_tests::row&) { return true; }
  static bool backend(const octavo::backend_entry&) { return true; }
};
void conform(std::string_view recipe_name) { conform(recipe_name, everything{}); }

/// Simulators, on the rows that are for their units' sums.
struct simulators_on_inputs {
  static bool row(const octavo_tests::row& r) { return r.with_unit_sums; }
  static bool backend(const octavo::backend_entry& b) { return simulates(b); }
};

}  // namespace

TEST_CASE("every backend conforms: mx32") { conform("mx32"); }
TEST_CASE("every backend conforms: token") { conform("token"); }
TEST_CASE("every backend conforms: tile") { conform("tile"); }
TEST_CASE("every backend conforms: tensor") { conform("tensor"); }
TEST_CASE("every backend conforms: bf16") { conform("bf16"); }

TEST_CASE("simulated devices conform with the sums of the unit that they model") {
  const std::vector<const octavo::backend_entry*> all = candidates();
  if (std::none_of(all.begin(), all.end(), [](const octavo::backend_entry* b) { return simulates(*b); })) {
    MESSAGE("skipped: no simulator is compiled");
    return;
  }
  if (compiled_reference() == nullptr) return;
  const unit_sums_of_simulators as_the_unit;
  std::set<input_family> judged;
  for (const auto& [recipe, bit] : recipes) judged.merge(conform(recipe, simulators_on_inputs{}));
  CHECK(judged == std::set<input_family>(std::begin(every_family), std::end(every_family)));
}

TEST_CASE("backends refuse what is listed, and nothing else") {
  for (const octavo::backend_entry* backend : candidates()) {
    std::vector<bool> seen(refusals().size());
    int supported = 0, refused = 0;
    for_each_combination("", [&](const row& r, std::string_view recipe) {
      for (const char* delta : deltas) {
        if (!has_engines(*backend, recipe, r.e5m2_gradients)) continue;
        if (simulates(*backend) && !backend->find(recipe, delta, r.e5m2_gradients)) continue;
        const std::string reason = refused_by(*backend, r, recipe, delta);
        bool listed = false, explained = false;
        for (std::size_t i = 0; i < refusals().size(); ++i) {
          const refusal& x = refusals()[i];
          const auto covers = [](std::string_view wanted, std::string_view name) {
            return wanted.empty() || wanted == name;
          };
          if (!covers(x.backend, backend->name) || !covers(x.recipe, recipe) || !covers(x.delta, delta) || !x.when(r.p))
            continue;
          listed = true;
          if (reason.find(x.reason) != std::string::npos) explained = seen[i] = true;
        }
        ++(reason.empty() ? supported : refused);
        if (!reason.empty() && !explained)
          FAIL_CHECK("not listed: " << describe(*backend, r, recipe, delta) << ": " << reason);
        if (reason.empty() && listed) FAIL_CHECK("listed, but computed: " << describe(*backend, r, recipe, delta));
      }
    });
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (!seen[i] && !simulates(*backend) && has_engines(*backend, refusals()[i].recipe) &&
          (refusals()[i].backend.empty() || refusals()[i].backend == backend->name))
        FAIL_CHECK("listed, but never met: " << backend->name << ": " << refusals()[i].reason);
    MESSAGE(backend->name << ": computes " << supported << " of the table's combinations, refuses " << refused);
  }
}
