// SPDX-License-Identifier: Apache-2.0
// The files of a run, read and checked, and the problem that they and the options describe.
#pragma once

#include <octavo/tensor/problem.hpp>

#include <optional>
#include <string>
#include <vector>

#include "options.hpp"
#include "support/npy.hpp"

namespace cli {

/// Everything lives in host memory; q, k, v, dout hold elements of problem.element.
struct inputs {
  octavo::problem problem;
  npy::array q, k, v;
  std::optional<npy::array> dout;
  std::optional<npy::array> cu_seqlens_q, cu_seqlens_kv;  ///< int32 or int64, documents + 1 of them
  std::optional<npy::array> sink;                         ///< float32 [h_q]
  std::optional<npy::array> key_shift;                    ///< float32 [b, h_kv, d_qk]
};

/// Ends the program with exit code 2 where files and options do not fit together. NaN and Inf only earn a warning.
inputs read_inputs(const problem_options& options);

/// Rounds float32 elements to `type`; elements that already are of it stay. `name` is for the error.
npy::array to_element_type(npy::array from, octavo::dtype type, const std::string& name);

}  // namespace cli
