// SPDX-License-Identifier: Apache-2.0
// What the deepest layer's attention saw in the last step of a run: real tensors for `octavo audit`.
#pragma once

#include <octavo/numeric/bf16.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "output_folder.hpp"
#include "shape.hpp"

namespace train_lm {

class model;

struct captured_tensors {
  explicit captured_tensors(const model& m);

  model_shape shape;                        ///< of the tensors: the batch is cut to two sequences, which are enough
  std::vector<octavo::bf16> q, k, v, dout;  ///< [batch, context, heads, head_dim]
};

/// Their names below --out, in the order q, k, v, dout.
inline constexpr const char* captured_files[] = {"captured/q.npy", "captured/k.npy", "captured/v.npy",
                                                 "captured/dout.npy"};

void write_captured(output_folder& out, const captured_tensors& tensors);

/// The command that audits them. Beside this program, `octavo` is called by the path at which this one was found.
std::string audit_command(const char* this_program, const std::filesystem::path& out);

}  // namespace train_lm
