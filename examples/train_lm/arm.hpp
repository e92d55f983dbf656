// SPDX-License-Identifier: Apache-2.0
// An arm of the comparison: a name, the octavo config that computes its attention, and what it changes in the problem.
//
//     key          octavo::config                         of the problem
//     bf16         <cpu, recipe::bf16, delta::stale>
//     stale        <cpu, R, delta::stale>                 key_centring, if asked for
//     matched      <cpu, R, delta::matched>               key_centring, if asked for
//     consistent   <cpu, R, delta::consistent>            key_centring, if asked for
//     residual     <cpu, R, delta::consistent>            o_residual; key_centring, if asked for
#pragma once

#include <octavo/backend/engine.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shape.hpp"

namespace train_lm {

struct arm {
  std::string name;
  octavo::engine engine;                         ///< a compiled octavo::config: its forward, backward, workspace size
  std::function<void(octavo::problem&)> adjust;  ///< options of the problem that belong to this arm
};

/// What a model of this shape asks of the arm's engine.
octavo::problem problem_of(const arm& a, const model_shape& shape);

/// What --arms can name, in the order of the table.
inline constexpr std::string_view arm_keys[] = {"bf16", "stale", "matched", "consistent", "residual"};

/// The arms of a job, on the cpu backend, in the order of arm_keys. Recipe: token, tile or mx32, for all but `bf16`.
/// Throws unsupported_error where this build lacks a config.
std::vector<arm> make_arms(std::span<const std::string> keys, std::string_view recipe, bool key_centring);

}  // namespace train_lm
