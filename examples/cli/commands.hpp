// SPDX-License-Identifier: Apache-2.0
// The subcommands. Each returns when its work is done and its files are in place; cli::stop ends it otherwise.
#pragma once

#include "options.hpp"

namespace cli {

void run_attention(const attention_options& options);
void run_audit(const audit_options& options);
void run_bench(const bench_options& options);
void run_backends();

}  // namespace cli
