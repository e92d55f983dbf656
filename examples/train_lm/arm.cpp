// SPDX-License-Identifier: Apache-2.0
#include "arm.hpp"

#include <octavo/engines.hpp>

#include <algorithm>

#include "errors.hpp"

namespace train_lm {
namespace {

octavo::engine find(std::string_view recipe, std::string_view delta) {
  for (const octavo::backend_entry& backend : octavo::all_backends()) {
    if (backend.name != "cpu") continue;
    if (!backend.compiled) throw unsupported_error(std::string("backend cpu: ") + backend.not_compiled_reason.c_str());
    if (const octavo::engine* e = backend.find(recipe, delta, false)) return *e;
  }
  throw unsupported_error("backend cpu is not compiled with recipe " + std::string(recipe) + ", delta " +
                          std::string(delta));
}

}  // namespace

octavo::problem problem_of(const arm& a, const model_shape& shape) {
  octavo::problem p;
  p.b = shape.batch;
  p.h_q = p.h_kv = shape.heads;
  p.s_q = p.s_kv = shape.context;
  p.d_qk = p.d_v = shape.head_dim();
  p.element = octavo::dtype::bf16;
  p.mask.causal = octavo::causal_mask::top_left;
  p.deterministic = true;
  a.adjust(p);
  return p;
}

std::vector<arm> make_arms(std::span<const std::string> keys, std::string_view recipe, bool key_centring) {
  const auto centre = [key_centring](octavo::problem& p) {
    if (key_centring) p.key_centring = octavo::key_centring::batch;
  };
  const auto keep_residual = [centre](octavo::problem& p) {
    centre(p);
    p.o_residual = true;
  };
  // In the order of arm_keys.
  const arm all[] = {
      {"bf16", find("bf16", "stale"), [](octavo::problem&) {}},
      {"fp8 stale", find(recipe, "stale"), centre},
      {"fp8 matched", find(recipe, "matched"), centre},
      {"fp8 consistent", find(recipe, "consistent"), centre},
      {"fp8 consistent + O residual", find(recipe, "consistent"), keep_residual},
  };
  static_assert(std::size(all) == std::size(arm_keys));
  std::vector<arm> chosen;
  for (std::size_t i = 0; i < std::size(all); ++i)
    if (std::ranges::find(keys, arm_keys[i]) != keys.end()) chosen.push_back(all[i]);
  return chosen;
}

}  // namespace train_lm
