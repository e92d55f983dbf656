// SPDX-License-Identifier: Apache-2.0
// octavo backends: one line per backend that this program knows.
#include <octavo/engines.hpp>

#include <cstdio>
#include <string>
#include <vector>

#include "commands.hpp"
#include "join.hpp"

namespace cli {
namespace {

std::string recipes_of(const octavo::backend_entry& entry) {
  std::vector<std::string> recipes;
  for (const auto list : entry.engines)
    if (!list.empty() && !list.front().e5m2_gradients) recipes.emplace_back(list.front().recipe);
  return join(recipes, " ");
}

/// What the engines compute beyond plain attention, all of them taken together.
std::string features_of(const octavo::backend_entry& entry) {
  octavo::feature_set features;
  for (const auto list : entry.engines)
    for (const octavo::engine& e : list) features |= e.supports(octavo::problem{}).supported;
  octavo::text out;
  out << features;
  return std::string(out.view());
}

}  // namespace

void run_backends() {
  for (const octavo::backend_entry& entry : octavo::all_backends()) {
    const octavo::text why = entry.compiled ? entry.unavailable() : entry.not_compiled_reason;
    const bool runnable = entry.compiled && why.empty();
    const std::string reason = runnable ? "on " + std::string(entry.device().view()) : std::string(why.view());
    std::printf("%s compiled=%s runnable=%s %s; is: %s; recipes: %s; features: %s\n", std::string(entry.name).c_str(),
                entry.compiled ? "yes" : "no", runnable ? "yes" : "no", reason.c_str(),
                std::string(entry.description).c_str(), recipes_of(entry).c_str(), features_of(entry).c_str());
  }
}

}  // namespace cli
