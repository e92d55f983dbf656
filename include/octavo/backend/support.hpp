// SPDX-License-Identifier: Apache-2.0
// Configs, and whether one computes a problem: every refusal that does not depend on a device, with its reason.
#pragma once

#include <octavo/algorithm/delta.hpp>
#include <octavo/scaling/recipe.hpp>
#include <octavo/tensor/problem.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE

/// Head dimensions fixed at compile time (GPU backends), or not (any_head_dim).
template <int Dqk, int Dv = Dqk>
struct head_dim {
  static constexpr int d_qk = Dqk, d_v = Dv;
};
using any_head_dim = head_dim<0, 0>;

constexpr bool is_listed_head_dim(std::int64_t d) {
  return d == 32 || d == 64 || d == 96 || d == 128 || d == 192 || d == 256;
}

/// What is chosen at compile time: who computes, how operands are scaled, which delta the backward subtracts.
template <class Backend, class Recipe, class Delta = delta::matched, class HeadDim = any_head_dim>
struct config {
  using backend = Backend;
  using recipe = Recipe;
  using delta = Delta;
  using head_dim = HeadDim;
  static_assert(Backend::template computes<Recipe>,
                "octavo::config: this backend does not compute this recipe (see backends/README.md for the matrix)");
  static_assert(std::is_same_v<HeadDim, any_head_dim> ||
                    (is_listed_head_dim(HeadDim::d_qk) && is_listed_head_dim(HeadDim::d_v)),
                "octavo::config: d_qk and d_v of a head_dim must be 32, 64, 96, 128, 192 or 256");
};

/// Every feature that is computed at all and has a meaning for the config: what a complete backend answers.
template <class Config>
constexpr feature_set every_feature() {
  feature_set all = feature::causal | feature::causal_bottom_right | feature::window | feature::softcap |
                    feature::sink | feature::packed | feature::grouped_queries | feature::key_centring |
                    feature::o_residual | feature::shard | feature::deterministic;
  if constexpr (octavo::recipe::is_fp8<typename Config::recipe>)
    all |= feature::save_payloads | feature::payload_inputs;
  if constexpr (std::is_same_v<typename Config::delta, octavo::delta::matched>) all |= feature::delta_halves;
  return all;
}

/// The answer of supports: yes, or no with what was required, what is supported, what is missing, and a sentence.
struct support {
  bool ok = true;
  feature_set required, supported, missing;
  text reason;

  constexpr explicit operator bool() const { return ok; }
};

/// Whether Config computes the problem (which must be valid: see validate). Backend::refusal may add its own reasons.
template <class Config>
support supports(const problem& p) {
  using backend = typename Config::backend;
  using recipe_t = typename Config::recipe;
  using delta_t = typename Config::delta;
  support s;
  s.required = required_features(p);
  s.supported = backend::template features<Config>();
  s.missing = s.required - s.supported;
  const auto refuse = [&s](text why) {
    s.ok = false;
    s.reason = why;
    return s;
  };
  constexpr bool consistent = std::is_same_v<delta_t, delta::consistent>;
  constexpr bool exact = std::is_same_v<recipe_t, recipe::exact>;
  if constexpr (consistent && !recipe::has_power_of_two_scales<recipe_t> && !exact)
    return refuse(text("delta consistent needs power-of-two scales (mx32, token or tile), which recipe ")
                  << recipe_t::name << " has not; use matched or stale");
  if constexpr (!recipe::is_fp8<recipe_t>)
    if (p.save_payloads || p.payload_inputs)
      return refuse(text("recipe ") << recipe_t::name << " has no FP8 payloads to save or to take");
  if (p.payload_inputs && p.save_payloads)
    return refuse(
        "inputs that are payloads already are not made again: save_payloads and payload_inputs exclude each other");
  if (p.softcap != 0 && p.key_centring != key_centring::off)
    return refuse("key centring relies on softmax not changing when keys are shifted, which is not so with a softcap");
  if (p.part_of_keys() && p.key_centring == key_centring::batch)
    return refuse("each part of the keys would be centred by a mean of its own: give the same key_shift to all parts");
  if (p.payload_inputs && p.key_centring == key_centring::batch)
    return refuse(
        "the mean key cannot be taken from a quantised K: centre K before it is quantised and give key_shift");
  if (p.o_residual && p.element == dtype::f32)
    return refuse("the residual of O exists for 16-bit elements (f16, bf16) only; T here is f32");
  if (!is_listed_head_dim(p.d_qk) || !is_listed_head_dim(p.d_v))
    return refuse(text("d_qk and d_v must be 32, 64, 96, 128, 192 or 256, not ") << p.d_qk << " and " << p.d_v);
  if constexpr (!std::is_same_v<typename Config::head_dim, any_head_dim>)
    if (p.d_qk != Config::head_dim::d_qk || p.d_v != Config::head_dim::d_v)
      return refuse(text("this config is compiled for d_qk ")
                    << Config::head_dim::d_qk << ", d_v " << Config::head_dim::d_v << ", not " << p.d_qk << ", "
                    << p.d_v);
  if (!s.missing.empty())
    return refuse(text("backend ") << backend::name() << " with " << recipe_t::name << ", " << delta_t::name
                                   << " does not compute: " << s.missing << " (required: " << s.required
                                   << "; supported: " << s.supported << ")");
  if (const text why = backend::template refusal<Config>(p); !why.empty()) return refuse(why);
  return s;
}

OCTAVO_END_NAMESPACE
