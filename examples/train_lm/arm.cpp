// SPDX-License-Identifier: Apache-2.0
#include "arm.hpp"

#include <algorithm>
#include <iterator>

#include "arms/arms.hpp"

namespace train_lm {

octavo::problem problem_of(const arm& a, const model_shape& shape) {
  octavo::problem p;
  p.b = shape.batch;
  p.h_q = p.h_kv = shape.heads;
  p.s_q = p.s_kv = shape.context;
  p.d_qk = p.d_v = shape.head_dim();
  p.element = octavo::dtype::bf16;
  p.mask.causal = octavo::causal_mask::top_left;
  p.deterministic = true;
  p.o_residual = a.o_residual;
  if (a.key_centring) p.key_centring = octavo::key_centring::batch;
  return p;
}

std::vector<arm> make_arms(std::span<const std::string> keys, std::string_view recipe, bool key_centring) {
  fp8_arms fp8 = recipe == "token" ? token_arms() : recipe == "tile" ? tile_arms() : mx32_arms();
  arm residual = fp8.consistent;
  residual.name += " + O residual";
  residual.o_residual = true;
  arm all[] = {bf16_arm(), fp8.stale, fp8.matched, fp8.consistent, residual};  // in the order of arm_keys
  static_assert(std::size(all) == std::size(arm_keys));

  std::vector<arm> chosen;
  for (std::size_t i = 0; i < std::size(all); ++i) {
    if (std::ranges::find(keys, arm_keys[i]) == keys.end()) continue;
    all[i].key_centring = key_centring && arm_keys[i] != "bf16";
    chosen.push_back(all[i]);
  }
  return chosen;
}

}  // namespace train_lm
