// SPDX-License-Identifier: Apache-2.0
// Dense FP32 matrices, row-major: a row is a token (or a parameter's input channel), a column is a channel.
#pragma once

#include <Eigen/Core>

#include <type_traits>

#include "shape.hpp"

namespace train_lm {

static_assert(std::is_same_v<index, Eigen::Index>);
using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using row = Eigen::Matrix<float, 1, Eigen::Dynamic>;
using column = Eigen::Matrix<float, Eigen::Dynamic, 1>;
using view = Eigen::Map<matrix>;                 // a parameter inside the flat vector of all parameters
using in_ref = const Eigen::Ref<const matrix>&;  // what the blocks read
using out_ref = Eigen::Ref<matrix>;              // what the blocks write

}  // namespace train_lm
