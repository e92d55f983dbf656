// SPDX-License-Identifier: Apache-2.0
// CDNA's matrix instructions as atoms of the lane-level kernels (backends/simt/atom.hpp). Each is issued with its operands
// changed over, A = the right one and B = the left one: D's rows are then columns of the product, so that a lane has
// one row and consecutive columns, as its bytes of a left operand are.
#pragma once

#include <octavo/backends/hip/amdgcn/matrix.hpp>
#include <octavo/backends/simt/atom.hpp>
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e5m2.hpp>

#include <type_traits>

OCTAVO_BEGIN_NAMESPACE
namespace backends::hip_common {

template <class E>
inline constexpr amdgcn::format format_of = std::is_same_v<E, e5m2> ? amdgcn::format::bf8 : amdgcn::format::fp8;

/// `Times` instructions of a shape along K, so that a lane's operand fills 16-byte pieces.
template <int Rows, int Depth, int Times>
struct atom_layout {
  static constexpr amdgcn::matrix_shape shape{Rows, Depth};
  static constexpr int size = Rows;
  static constexpr int depth = Depth * Times;
  static constexpr int words = shape.bytes() * Times / 4;
  static constexpr int sums = shape.sums();

  OCTAVO_HD static constexpr int operand_row(int lane, int) { return shape.operand_row(lane); }
  OCTAVO_HD static constexpr int operand_depth(int lane, int word) {
    constexpr int instruction_words = words / Times;
    return word / instruction_words * Depth + shape.operand_depth(lane, word % instruction_words * 4);
  }
  OCTAVO_HD static constexpr int sum_row(int lane, int) { return shape.sum_j(lane); }
  OCTAVO_HD static constexpr int sum_column(int lane, int i) { return shape.sum_i(lane, i); }
};

}  // namespace backends::hip_common
OCTAVO_END_NAMESPACE
