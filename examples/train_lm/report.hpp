// SPDX-License-Identifier: Apache-2.0
// What a job leaves behind: curves.csv, summary.csv, curves.png and a table on standard output.
#pragma once

#include <string>
#include <vector>

#include "summary.hpp"

namespace train_lm {

/// seed,arm,step,loss,grad_norm,rowsum_layer0,...: one line per step of each run.
void write_curves(const std::filesystem::path& file, const std::vector<run_result>& runs, const std::vector<arm>& arms,
                  index layers);

/// arm,seed,held_out_loss,largest_grad_norm,seconds,rowsum_layer0,...: one line per run.
void write_summary(const std::filesystem::path& file, const std::vector<run_result>& runs, const std::vector<arm>& arms,
                   index layers);

/// Training loss, its difference to the baseline's and the row-sum residual of every arm over the steps. Empty, or why
/// there is no picture.
std::string draw_curves(const std::filesystem::path& file, const std::vector<run_result>& runs,
                        const std::vector<arm>& arms, const options& o);

void print_table(const std::vector<arm_summary>& arms, const options& o, const corpus& text);

}  // namespace train_lm
