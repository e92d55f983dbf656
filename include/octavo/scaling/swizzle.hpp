// SPDX-License-Identifier: Apache-2.0
// The 128x4 layout in which Blackwell's block-scaled matrix instructions (PTX tcgen05.mma, .kind::mxf8f6f4
// .block_scale) and cuBLASLt (CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0) take E8M0 scales.
//
// A scale matrix has one row per row of the operand (its axis that is not contracted) and one column per 32 elements
// along the contracted axis. It is cut into tiles of 128 rows x 4 columns, 512 bytes each; tiles that differ in column
// are neighbours, then come the next 128 rows. In a tile, 4 scales of a row stay together and rows 32 apart are
// interleaved: tensor memory takes a tile as 32 lanes of 16 bytes, repeated for each of four warps:
//
//     byte in the tile = (row % 32) * 16 + (row / 32) * 4 + column           (row < 128, column < 4)
//
// Source: "1D Block Scaling Factors Layout" of the cuBLAS manual.
//
// Rows are padded to 128 in each (batch, head) plane, so plane p starts at p * swizzled_scale_bytes(rows, columns). It
// is not enough to pad a flattened batch * rows axis: unless rows is a multiple of 128, a plane after the first would
// begin inside a tile, while the instructions address whole tiles, and every batch but the first would be multiplied
// by its neighbour's scales.
#pragma once

#include <octavo/config.hpp>

#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

inline constexpr std::int64_t swizzle_tile_rows = 128;
inline constexpr std::int64_t swizzle_tile_columns = 4;
inline constexpr std::int64_t swizzle_tile_bytes = swizzle_tile_rows * swizzle_tile_columns;

// Tiles needed for `columns` scales per row.
OCTAVO_HD constexpr std::int64_t swizzled_column_tiles(std::int64_t columns) {
  return (columns + swizzle_tile_columns - 1) / swizzle_tile_columns;
}

// Bytes of one (batch, head) plane of [rows, columns] scales, padding included.
OCTAVO_HD constexpr std::int64_t swizzled_scale_bytes(std::int64_t rows, std::int64_t columns) {
  const std::int64_t row_tiles = (rows + swizzle_tile_rows - 1) / swizzle_tile_rows;
  return row_tiles * swizzled_column_tiles(columns) * swizzle_tile_bytes;
}

// Where in its plane the scale of (row, column) lies, in bytes. `columns` is the plane's width, padded to 4 or not.
// Padding must hold a scale that is not NaN (byte 0, 2^-127, will do): NaN times a padded zero would reach a sum.
OCTAVO_HD constexpr std::int64_t swizzled_scale_offset(std::int64_t row, std::int64_t column, std::int64_t columns) {
  const std::int64_t tile = (row / swizzle_tile_rows) * swizzled_column_tiles(columns) + column / swizzle_tile_columns;
  const std::int64_t row_in_tile = row % swizzle_tile_rows;
  const std::int64_t offset_in_tile = (row_in_tile % 32) * 16 + (row_in_tile / 32) * 4 + column % swizzle_tile_columns;
  return tile * swizzle_tile_bytes + offset_in_tile;
}

OCTAVO_END_NAMESPACE
