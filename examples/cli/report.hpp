// SPDX-License-Identifier: Apache-2.0
// The parts that the reports of all subcommands share.
#pragma once

#include <octavo/backend/simulation.hpp>
#include <octavo/tensor/problem.hpp>

#include <string>
#include <vector>

#include "json.hpp"
#include "options.hpp"

namespace cli {

/// "shape": the extents of the problem.
void report_shape(json_writer& json, const octavo::problem& p);

/// "options": what changes the results, beside backend, recipe and delta.
void report_options(json_writer& json, const octavo::problem& p, const engine_options& engine);

/// "kernels": what each kernel of a simulated device did.
void report_kernels(json_writer& json, const std::vector<octavo::kernel_counts>& kernels);

/// Sentences that a reader of the results should know.
std::vector<std::string> notes_on(const octavo::problem& p);

const char* name_of(octavo::causal_mask mask);
const char* name_of(octavo::key_centring centring);

}  // namespace cli
