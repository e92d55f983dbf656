// SPDX-License-Identifier: Apache-2.0
// An arm of the comparison: a name, the octavo config that computes its attention, and what it changes in the problem.
//
//     key          octavo::config                         of the problem
//     bf16         <cpu, recipe::bf16, delta::stale>
//     stale        <cpu, R, delta::stale>                 key_centring, if asked for
//     matched      <cpu, R, delta::matched>               key_centring, if asked for
//     consistent   <cpu, R, delta::consistent>            key_centring, if asked for
//     residual     <cpu, R, delta::consistent>            o_residual; key_centring, if asked for
//
// The configs themselves are compiled in arms/, one recipe per file.
#pragma once

#include <octavo/attention.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shape.hpp"

namespace train_lm {

/// The public functions of one config behind pointers, so that the command line can choose among configs.
struct arm {
  std::string name;
  octavo::support (*supports)(const octavo::problem&);
  std::size_t (*workspace_size)(const octavo::problem&);
  octavo::status (*forward)(const octavo::problem&, const octavo::forward_inputs&, const octavo::forward_outputs&,
                            octavo::workspace);
  octavo::status (*backward)(const octavo::problem&, const octavo::backward_inputs&, const octavo::backward_outputs&,
                             octavo::workspace);
  bool o_residual = false;
  bool key_centring = false;
};

/// What a model of this shape asks of the arm's config.
octavo::problem problem_of(const arm& a, const model_shape& shape);

/// What --arms and --recipe can name, in the order of the table.
inline constexpr std::string_view arm_keys[] = {"bf16", "stale", "matched", "consistent", "residual"};
inline constexpr std::string_view recipe_keys[] = {"token", "tile", "mx32"};

/// The arms of a job, in the order of arm_keys. Recipe: one of recipe_keys, for all but `bf16`.
std::vector<arm> make_arms(std::span<const std::string> keys, std::string_view recipe, bool key_centring);

}  // namespace train_lm
