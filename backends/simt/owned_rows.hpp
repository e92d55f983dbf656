// SPDX-License-Identifier: Apache-2.0
// The left operand that a warp keeps while it walks: all channels of its own rows of an image. It lies in shared memory,
// from where every product fetches it, or, where a lane has registers to spare and a block no memory, in registers.
#pragma once

#include <octavo/backends/simt/fragments.hpp>
#include <octavo/backends/simt/operands.hpp>
#include <octavo/backends/simt/stage_copy.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

template <class M, bool scaled, int row_tiles, int D, int threads, bool in_registers>
class owned_rows {
 public:
  struct storage {
    alignas(16) std::uint8_t bytes[image_bytes<M, scaled>(tile_tokens, D)];
  };

  /// Threads of the block fetch all its rows of a tile: there after wait_transfers and a barrier.
  OCTAVO_DEVICE void fetch(storage& in, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    rows_ = in.bytes + image_bytes<M, scaled>(place.first_row, D);
    lane_ = place.lane;
    using copy = stage_copy<M, threads, image_bytes<M, scaled>(tile_tokens, D)>;
    typename copy::transfer transfer;
    copy::start(transfer, copy_pair{in.bytes, tile});
    transfer.deliver();
  }
  /// The lane's part of row tile m, depth k.
  OCTAVO_DEVICE void load(int m, int k, lane_operand<M, scaled>& to) const {
    load_block(rows_, m * (D / image_layout<M>::depth) + k, lane_, to);
  }

 private:
  const std::uint8_t* rows_ = nullptr;
  int lane_ = 0;
};

template <class M, bool scaled, int row_tiles, int D, int threads>
class owned_rows<M, scaled, row_tiles, D, threads, true> {
  static constexpr int depths = D / image_layout<M>::depth;

 public:
  struct storage {};

  OCTAVO_DEVICE void fetch(storage&, const std::uint8_t* tile, const lane_place<M, row_tiles>& place) {
    OCTAVO_UNROLL
    for (int m = 0; m < row_tiles; ++m) {
      OCTAVO_UNROLL
      for (int k = 0; k < depths; ++k)
        load_block(tile + image_bytes<M, scaled>(place.first_row, D), m * depths + k, place.lane, of_[m][k]);
    }
  }
  OCTAVO_DEVICE void load(int m, int k, lane_operand<M, scaled>& to) const { to = of_[m][k]; }

 private:
  lane_operand<M, scaled> of_[row_tiles][depths];
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
