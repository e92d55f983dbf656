// SPDX-License-Identifier: Apache-2.0
// What a simulated launch can be told, and what it tells.
#pragma once

#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/config.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// How a matrix product adds up.
enum class accumulation {
  ideal,  ///< exactly, rounded to FP32 once per instruction
  model,  ///< aligned to the largest exponent and cut: to 13 fraction bits by wgmma, 25 by tcgen05 and mma.sync; amdgcn/sums.hpp
};

struct options {
  /// Draws the order of threads and the time of completion of copies and products. 0: round-robin and as late as the
  /// instructions allow, which is when a missing wait shows. Odd seeds let some warps run far ahead of others.
  std::uint64_t seed = 0;
  accumulation accumulator = accumulation::ideal;
  /// What mma.sync's unit keeps in `model`: 25 bits on an H200; Ada's FP8 unit is said to keep 13 (SageAttention2, arXiv
  /// 2411.10958).
  int mma_fraction_bits = 25;
  /// Blocks that run at once. Another one starts by itself when none of them can go on without it (wait_turn) ...
  int resident = 1;
  /// ... until as many run as a device holds: blocks beyond start only when others have ended.
  int resident_limit = 132;
  /// Of the device, for kernels whose blocks stay and draw their work: as many blocks start at most.
  int multiprocessors = 3;
  /// Whether registers of A that change while a product may read them are a fault. They are one on the device only if
  /// the same virtual registers are written; a variable of a scope that is entered again is new ones there.
  bool check_operand_registers = true;
  /// Whether a product that starts from registers touched since the last wait must come after a wgmma_fence.
  bool check_fences = true;
  /// Whether all products and copies of scales that one thread issues are taken to run in the order of issue. The PTX
  /// ISA promises it for a product after the copy whose scales it reads, and for products into the same accumulators.
  bool tensor_cores_in_order = false;

  // In programs that link octavo::sim_checked; without effect in others.
  /// Whether accesses without an order between them are a fault.
  bool check_races = true;
  /// Global memory that the kernel may access, beside what global_memory knows. Where there is none at all, global memory
  /// is not looked at.
  std::vector<checks::range> buffers{};
};

/// How much of what was done.
struct report {
  std::int64_t blocks = 0;
  std::int64_t products = 0;        ///< wgmma instructions of a warpgroup, and tcgen05 products
  std::int64_t named_barriers = 0;  ///< times that a barrier of the block or a named one was completed
  std::int64_t phases = 0;          ///< phases of barriers in shared memory that ended
  std::int64_t bulk_copies = 0;
  std::int64_t bulk_bytes = 0;
  std::map<std::string, std::int64_t> matrix_instructions{};  ///< of warps and warpgroups, by name
  std::int64_t warp_collectives = 0;                          ///< shuffles, votes, stmatrix, ... of a warp
  std::int64_t turns = 0;                                     ///< wait_turn that had to wait
  std::int64_t switches = 0;                                  ///< of the simulator between threads
  int most_resident = 0;                                      ///< blocks that ran at once
  int shared_bytes = 0;                                       ///< of a block
  bool races_checked = false;
};

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
