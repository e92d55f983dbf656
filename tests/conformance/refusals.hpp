// SPDX-License-Identifier: Apache-2.0
// What each backend may refuse of the table: all of it, and nothing else. A refusal that is not listed fails the suite,
// as does a listed one that no longer happens (then delete its line: the backend has learnt something).
#pragma once

#include <octavo/tensor/problem.hpp>

#include <span>
#include <string_view>

namespace octavo_tests {

struct refusal {
  std::string_view backend;  // "": every backend
  std::string_view recipe;   // "": every recipe
  std::string_view delta;    // "": every policy
  bool (*when)(const octavo::problem&);
  std::string_view reason;  // what the answer must contain
};

/// The answer for a recipe and policy for which a backend has no engine at all.
inline constexpr std::string_view no_engine = "no such engine";

inline std::span<const refusal> refusals() {
  using octavo::feature, octavo::problem;
  using centring = octavo::key_centring;
  constexpr auto always = [](const problem&) { return true; };
  constexpr auto payloads = [](const problem& p) { return p.save_payloads || p.payload_inputs; };
  // clang-format off
  static constexpr refusal list[] = {
    // By the numerics, whoever computes.
    {"", "tensor", "consistent", always, no_engine},
    {"", "bf16",   "consistent", always, no_engine},
    {"", "bf16",   "", payloads, "has no FP8 payloads"},
    {"", "", "", [](const problem& p) { return p.softcap != 0 && p.key_centring != centring::off; }, "not so with a softcap"},
    {"", "", "", [](const problem& p) { return p.o_residual && p.element == octavo::dtype::f32; }, "16-bit elements"},
    {"", "", "", [](const problem& p) { return p.d_qk == 40; }, "must be 32, 64, 96, 128, 192 or 256, not 40 and 40"},
    {"", "", "stale",      [](const problem& p) { return p.delta_halves; }, "does not compute: delta-halves"},
    {"", "", "consistent", [](const problem& p) { return p.delta_halves; }, "does not compute: delta-halves"},
    {"", "", "", [](const problem& p) { return p.wants == feature::dropout; }, "does not compute: dropout"},
    {"", "", "", [](const problem& p) { return p.wants == feature::additive_bias; }, "does not compute: additive-bias"},
    {"", "", "", [](const problem& p) { return p.wants == feature::alibi; }, "does not compute: alibi"},
    {"", "", "", [](const problem& p) { return p.wants == feature::arbitrary_mask; }, "does not compute: arbitrary-mask"},
    {"", "", "", [](const problem& p) { return p.wants == feature::paged_kv; }, "does not compute: paged-kv"},
    {"", "", "", [](const problem& p) { return p.wants == feature::fp8_outputs; }, "does not compute: fp8-outputs"},
    {"", "", "", [](const problem& p) { return p.payload_inputs && p.key_centring == centring::batch; }, "the mean key cannot be taken"},
  };
  // clang-format on
  return list;
}

}  // namespace octavo_tests
