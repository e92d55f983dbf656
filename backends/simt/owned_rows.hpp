// SPDX-License-Identifier: Apache-2.0
// The left operand that a warp keeps while it walks: all channels of its own rows of an image. It lies in shared memory,
// from where every product fetches it, or, where a lane has registers to spare and a block no memory, in registers.
//
// Where the unit does not multiply FP8, it may be kept as the unit takes it, converted once and not at every step: twice the
// bytes, in shared memory or, where a block has none to spare, in the lane's local memory, which the L1 cache holds.
#pragma once

#include <octavo/backends/simt/fragments.hpp>
#include <octavo/backends/simt/operands.hpp>
#include <octavo/backends/simt/schedule.hpp>
#include <octavo/backends/simt/stage_copy.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, bool scaled, int row_tiles, int D, int threads, own_rows where>
class owned_rows;

template <class M, bool scaled, int row_tiles, int D, int threads>
class owned_rows<M, scaled, row_tiles, D, threads, own_rows::in_shared> {
 public:
  using operand = lane_operand<M, scaled>;
  struct storage {
    alignas(16) std::uint8_t bytes[image_bytes<M, scaled>(tile_tokens, D)];
  };

  /// Threads of the block fetch all its rows of a tile: there after wait_transfers and a barrier. A: the atom of the products.
  template <class A>
  OCTAVO_DEVICE void fetch(storage& in, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    rows_ = in.bytes + image_bytes<M, scaled>(place.first_row, D);
    lane_ = place.lane;
    using copy = stage_copy<M, threads, image_bytes<M, scaled>(tile_tokens, D)>;
    typename copy::transfer transfer;
    copy::start(transfer, copy_pair{in.bytes, tile});
    transfer.deliver();
  }
  /// The lane's part of row tile m, depth k.
  OCTAVO_DEVICE void load(int m, int k, operand& to) const {
    load_block(rows_, m * (D / image_layout<M>::depth) + k, lane_, to);
  }

 private:
  const std::uint8_t* rows_ = nullptr;
  int lane_ = 0;
};

template <class M, bool scaled, int row_tiles, int D, int threads>
class owned_rows<M, scaled, row_tiles, D, threads, own_rows::in_registers> {
  static constexpr int depths = D / image_layout<M>::depth;

 public:
  using operand = lane_operand<M, scaled>;
  struct storage {};

  template <class A>
  OCTAVO_DEVICE void fetch(storage&, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) {
      OCTAVO_UNROLL
      for (int k = 0; k < depths; ++k)
        load_block(tile + image_bytes<M, scaled>(place.first_row, D), m * depths + k, place.lane, of_[m][k]);
    }
  }
  OCTAVO_DEVICE void load(int m, int k, operand& to) const { to = of_[m][k]; }

 private:
  operand of_[row_tiles][depths];
};

/// Each lane converts and keeps its own part, which no other reads.
template <class M, int row_tiles, int D, int threads, bool in_shared>
class converted_rows {
  static constexpr int depths = D / image_layout<M>::depth;
  static constexpr int pieces = sizeof(converted_operand<M>) / 16;

 public:
  using operand = converted_operand<M>;
  struct storage {
    alignas(16) std::uint8_t piece[in_shared ? row_tiles * depths * pieces : 0][threads][16];
  };

  template <class A>
  OCTAVO_DEVICE void fetch(storage& in, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    mine_ = in.piece[0][M::thread_index()];
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) {
      OCTAVO_UNROLL
      for (int k = 0; k < depths; ++k) {
        lane_operand<M, false> of_image;
        load_block(tile + image_bytes<M, false>(place.first_row, D), m * depths + k, place.lane, of_image);
        operand converted;
        A::convert_left(of_image.words, converted.words);
        OCTAVO_UNROLL
        for (int p = 0; p < pieces; ++p)
          __builtin_memcpy(mine_ + ((m * depths + k) * pieces + p) * threads * 16, converted.words + 4 * p, 16);
      }
    }
  }
  OCTAVO_DEVICE void load(int m, int k, operand& to) const {
    OCTAVO_UNROLL
    for (int p = 0; p < pieces; ++p)
      __builtin_memcpy(to.words + 4 * p,
                       __builtin_assume_aligned(mine_ + ((m * depths + k) * pieces + p) * threads * 16, 16), 16);
  }

 private:
  std::uint8_t* mine_ = nullptr;
};
template <class M, int row_tiles, int D, int threads>
class owned_rows<M, false, row_tiles, D, threads, own_rows::converted_in_shared>
    : public converted_rows<M, row_tiles, D, threads, true> {};

template <class M, int row_tiles, int D, int threads>
class owned_rows<M, false, row_tiles, D, threads, own_rows::converted_in_local> {
  static constexpr int depths = D / image_layout<M>::depth;

 public:
  using operand = converted_operand<M>;
  /// A variable of the thread's, of its own: what else is in an object with it would lie in local memory, too.
  struct storage {
    operand of[row_tiles * depths];
  };

  template <class A>
  OCTAVO_DEVICE void fetch(storage& in, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    of_ = in.of;
    OCTAVO_UNROLL
    for (int i = 0; i < row_tiles * depths; ++i) {
      lane_operand<M, false> of_image;
      load_block(tile + image_bytes<M, false>(place.first_row, D), i, place.lane, of_image);
      A::convert_left(of_image.words, in.of[i].words);
    }
  }
  /// An index that the compiler cannot know keeps it from taking registers for all.
  OCTAVO_DEVICE void load(int m, int k, operand& to) const { to = of_[M::unknown_zero() + m * depths + k]; }

 private:
  const operand* of_ = nullptr;
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
