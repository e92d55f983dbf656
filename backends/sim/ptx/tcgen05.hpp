// SPDX-License-Identifier: Apache-2.0
// backends/cuda/ptx/tcgen05.hpp on the host: products and copies of scales that one thread issues and that end later.
#pragma once

#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>
#include <octavo/backends/sim/instruction.hpp>
#include <octavo/backends/sim/ptx/copy.hpp>
#include <octavo/backends/sim/ptx/device.hpp>
#include <octavo/backends/sim/ptx/tensor_memory.hpp>
#include <octavo/backends/sim/tensor_cores.hpp>
#include <octavo/config.hpp>

#include <span>

OCTAVO_BEGIN_NAMESPACE
namespace backends::ptx {

/// Lane 0.
inline bool elect_one(const sim::site where = sim::site::current()) {
  int none = 0;
  const auto model = [](std::span<int* const>) {};
  sim::warp_instruction("elect_one", none, model, where);
  return sim::lane_index() == 0;
}

inline void tcgen05_mma(tensor_address d, shared_operand a, shared_operand b, mma_instruction how, bool accumulate,
                        const sim::site where = sim::site::current()) {
  sim::issue_product({.d = d.bits, .a = a.bits, .b = b.bits, .how = how.bits, .accumulate = accumulate}, where);
}
inline void tcgen05_mma(tensor_address d, tensor_address a, shared_operand b, mma_instruction how, bool accumulate,
                        const sim::site where = sim::site::current()) {
  sim::issue_product(
      {.d = d.bits, .a = a.bits, .b = b.bits, .how = how.bits, .accumulate = accumulate, .a_in_tensor_memory = true},
      where);
}
inline void tcgen05_mma_scaled(tensor_address d, shared_operand a, shared_operand b, mma_instruction how,
                               tensor_address a_scales, tensor_address b_scales, bool accumulate,
                               const sim::site where = sim::site::current()) {
  sim::issue_product({.d = d.bits,
                      .a = a.bits,
                      .b = b.bits,
                      .how = how.bits,
                      .accumulate = accumulate,
                      .scaled = true,
                      .a_scales = a_scales.bits,
                      .b_scales = b_scales.bits},
                     where);
}
inline void tcgen05_mma_scaled(tensor_address d, tensor_address a, shared_operand b, mma_instruction how,
                               tensor_address a_scales, tensor_address b_scales, bool accumulate,
                               const sim::site where = sim::site::current()) {
  sim::issue_product({.d = d.bits,
                      .a = a.bits,
                      .b = b.bits,
                      .how = how.bits,
                      .accumulate = accumulate,
                      .a_in_tensor_memory = true,
                      .scaled = true,
                      .a_scales = a_scales.bits,
                      .b_scales = b_scales.bits},
                     where);
}
inline void tcgen05_copy_scales(tensor_address to, shared_operand tile, const sim::site where = sim::site::current()) {
  sim::issue_scale_copy(to.bits, tile.bits, where);
}
inline void tcgen05_commit(shared_barrier& barrier, const sim::site where = sim::site::current()) {
  sim::issue_commit(&barrier, where);
}

}  // namespace backends::ptx
OCTAVO_END_NAMESPACE
