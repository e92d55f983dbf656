// SPDX-License-Identifier: Apache-2.0
#include "device.hpp"

#include <algorithm>
#include <vector>

#include "join.hpp"

namespace cli {

const octavo::backend_entry& runnable_backend(const std::string& name) {
  const auto all = octavo::all_backends();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
  if (found == all.end()) unsupported("backend " + name + " is not known to this program (octavo backends lists all)");
  if (!found->compiled)
    unsupported("backend " + name + " is not compiled: " + std::string(found->not_compiled_reason.view()));
  if (const octavo::text why = found->unavailable(); !why.empty())
    unsupported("backend " + name + " cannot run here: " + std::string(why.view()));
  return *found;
}

const octavo::backend_entry& runnable_backend(const engine_options& options) {
  const octavo::backend_entry& entry = runnable_backend(options.backend);
  if (!options.accumulator.empty() && entry.simulation.set_accumulator == nullptr)
    bad_input("--accumulator: backend " + options.backend + " simulates no device; allowed with sim- backends");
  return entry;
}

const octavo::engine& find_engine(const octavo::backend_entry& entry, const engine_options& options) {
  const octavo::engine* found = entry.find(options.recipe, options.delta, options.e5m2_gradients);
  if (found == nullptr) unsupported(no_engine_reason(entry, options));
  return *found;
}

std::string no_engine_reason(const octavo::backend_entry& entry, const engine_options& options) {
  if (options.delta == "consistent" && (options.recipe == "tensor" || options.recipe == "bf16"))
    return "delta consistent needs power-of-two scales (mx32, token or tile), which recipe " + options.recipe +
           " has not; use matched or stale";
  if (options.e5m2_gradients && (options.recipe == "bf16" || options.recipe == "exact"))
    return "recipe " + options.recipe + " has no FP8 gradients to put in E5M2; leave --e5m2-gradients out";
  std::vector<std::string> recipes;
  for (const auto list : entry.engines)
    for (const octavo::engine& e : list)
      if (e.delta == options.delta && e.e5m2_gradients == options.e5m2_gradients) recipes.emplace_back(e.recipe);
  if (options.e5m2_gradients && recipes.empty())
    return "backend " + std::string(entry.name) + " has no E5M2 gradients here; leave --e5m2-gradients out";
  return "backend " + std::string(entry.name) + " does not compute recipe " + options.recipe + " with delta " +
         options.delta + (options.e5m2_gradients ? " and E5M2 gradients" : "") +
         "; recipes with these: " + join(recipes);
}

}  // namespace cli
