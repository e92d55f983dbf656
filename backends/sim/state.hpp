// SPDX-License-Identifier: Apache-2.0
// What a resident block consists of: threads, warps, warpgroups, shared memory, barriers, copies under way.
#pragma once

#include <octavo/backends/sim/fiber.hpp>
#include <octavo/backends/sim/order.hpp>
#include <octavo/backends/sim/piece_queue.hpp>
#include <octavo/config.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline constexpr int lanes = 32;          ///< of a warp of NVIDIA's, and unless a kernel says otherwise
inline constexpr int most_lanes = 64;     ///< of a wave of AMD's
inline constexpr int group_lanes = 128;   ///< of a warpgroup
inline constexpr int barrier_count = 16;  ///< named barriers of a block, 0 being that of all its threads
/// Dynamic shared memory begins behind the kilobyte that the system keeps, so that address 0 means nothing.
inline constexpr std::uint32_t shared_base = 1024;
inline constexpr int most_shared_bytes = 232448;
inline constexpr int canary_bytes = 4096;  ///< behind the block's shared memory, to see writes past its end

using site = std::source_location;

inline std::string text_of(const site& where) {
  const char* name = std::strrchr(where.file_name(), '/');
  return std::string(name != nullptr ? name + 1 : where.file_name()) + ":" + std::to_string(where.line());
}

struct block;

enum class wait_kind { none, collective, barrier, phase, products, registers, turn };

/// Why a thread does not run.
struct waiting {
  wait_kind kind = wait_kind::none;
  int id = 0;      ///< of a barrier; the parity of a phase; the registers asked for
  int number = 0;  ///< the turn waited for
  std::uint32_t offset = 0;
  const std::int32_t* turn = nullptr;
  site where{};
};

/// A product's accumulators as one lane names them.
struct accumulators_in_use {
  const float* at;
  std::int64_t product;  ///< the last one that writes them
};

/// Registers of a load from tensor memory that has not been waited for.
struct loaded_registers {
  float* to;
  std::vector<std::uint32_t> values;
  site where;
};

struct thread : fiber {
  block* home = nullptr;
  int index = 0;
  bool finished = false;
  waiting wait{};

  // Matrix products, in the lane's own count.
  std::int64_t issued = 0;                    ///< products
  std::vector<std::int64_t> committed;        ///< `issued` at each commit: where groups end
  std::int64_t waited = 0;                    ///< products that a wait has covered
  bool fenced = false;                        ///< wgmma_fence since the last wait
  std::vector<accumulators_in_use> in_use{};  ///< of products not waited for
  std::vector<std::uint32_t> unfenced{};      ///< 16-byte pieces of shared memory written, and no fence_async since

  knowledge order{};
  std::vector<loaded_registers> loads{};
  piece_queue pieces{};

  int lane() const;
};

enum class collective_kind {
  none,
  sync_warp,
  shuffle,
  maximum,
  any,
  instruction,
  store,
  together,  ///< the last lane runs a function on what all have brought
  sync_block,
  sync_named,
  arrive_named,
  registers
};

/// What lanes bring to an instruction of the warp.
struct contribution {
  std::array<std::uint32_t, 4> values{};
  char* row = nullptr;
  int argument = 0;
  void* registers = nullptr;  ///< of an instruction that a model computes (instruction.hpp)
  void (*together)(const contribution* of_lanes, int lanes) = nullptr;
};

/// Computes an instruction for all lanes from what they brought: the registers of each of `count` lanes.
using warp_model = void (*)(const void* context, void* const* registers, int count);
struct instruction {
  const char* name = nullptr;
  warp_model model = nullptr;
  const void* context = nullptr;  ///< of the model
  bool counted = false;           ///< by name in the report
};

/// The collective that lanes of a warp have reached. All arrive at one before any reaches the next.
struct warp {
  collective_kind kind = collective_kind::none;
  int first = 0, second = 0;  ///< arguments in which lanes must agree
  int arrived = 0;
  int first_lane = 0;
  site where{};
  instruction what{};
  int finished = 0;
  std::array<contribution, most_lanes> given{};
  std::array<std::uint32_t, most_lanes> result{};
  int registers = 0;
  std::uint64_t priority = 0;
};

struct named_barrier {
  int expected = 0;  ///< threads, 0 while nobody has come
  int arrived = 0;
  std::vector<thread*> waiting{};
  clock heard{};  ///< from those who have come
};

/// What the simulator keeps beside the word of a barrier in shared memory.
struct phase_waiters {
  std::vector<thread*> waiting{};
  int not_resumed = 0;  ///< woken by the end of a phase, and not yet run
  int initialiser = 0;  ///< the thread
  bool fenced = false;  ///< fence_barriers has followed
  clock coming{};       ///< what arrivals of the phase under way know
  clock ended{};        ///< and those of all phases before
};

struct bulk_copy {
  block* home;
  std::uint32_t to;  ///< offsets in shared memory
  const char* from;
  int bytes;
  std::uint32_t barrier;
  int issuer;
  site where;
  int agent;  ///< and its number there: order.hpp
  std::uint32_t time;
  std::uint32_t number = 0;                ///< among the copies of its barrier, as the checker counts them
  std::function<void(char* to)> gather{};  ///< in the place of `from`: makes all bytes (a box of a tensor)
};

/// Accumulators that products in flight write, by row; the lanes' registers hold NaN meanwhile.
struct accumulators {
  int columns = 0;
  int pending = 0;  ///< products that have not run
  std::array<float*, group_lanes> at{};
  std::array<bool, group_lanes> delivered{};
  std::vector<float> values{};
};

/// One wgmma.
struct product {
  int columns = 0;
  bool accumulate = false;
  bool from_registers = false;
  std::uint64_t a = 0, b = 0;
  std::int64_t group = 0;
  int joined = 0;  ///< lanes that have issued it
  bool done = false;
  int first_lane = 0;
  site where{};
  std::shared_ptr<accumulators> d{};
  std::vector<access> fillers{};  ///< copies that filled its operands, the last of each barrier
  std::array<std::uint8_t, 64 * 32> registers{};
  std::array<const std::uint32_t*, group_lanes> operand{};
  std::array<std::array<std::uint32_t, 4>, group_lanes> operand_values{};
};

struct warpgroup {
  std::deque<std::unique_ptr<product>> products{};
  std::int64_t first = 0;  ///< number of the first in the queue
  std::int64_t run = 0;    ///< products that have run
  std::vector<std::shared_ptr<accumulators>> live{};
  std::vector<thread*> waiting{};
};

struct tensor_state;  // tensor_memory.hpp
struct async_state;   // proxy.hpp

struct block {
  std::int64_t index = 0;
  int shared_bytes = 0;
  int warp_lanes = lanes;
  int finished = 0;
  int free_registers = 0;  ///< of the pool that setmaxnreg takes from, by warp
  char* shared = nullptr;
  std::unique_ptr<char[]> memory;
  std::vector<thread> threads;
  std::vector<warp> warps;
  std::vector<warpgroup> groups;
  std::array<named_barrier, barrier_count> barriers{};
  std::map<std::uint32_t, phase_waiters> phases{};
  std::vector<thread*> waiting_for_registers{};

  // What the asynchronous units may not see yet, by pieces of 16 bytes. Rows that store_transposed wrote are known by
  // thread. Plain writes are not seen, but that a piece differs from `published` is: a fault where no thread at all has
  // come to a fence_async since the two were the same.
  std::vector<std::uint16_t> unfenced{};  ///< thread + 1 that wrote it and came to no fence_async since
  std::vector<char> published{};
  std::vector<std::int64_t> published_at{};  ///< `fences` when shared memory was found equal to `published`
  std::int64_t fences = 0;

  sim::agents agents{};
  std::shared_ptr<tensor_state> tensors{};  ///< where the kernel uses tensor memory
  std::shared_ptr<async_state> async{};     ///< where asynchronous units touch shared memory

  warp& warp_of(const thread& t) { return warps[static_cast<std::size_t>(t.index / warp_lanes)]; }
  warpgroup& group_of(const thread& t) { return groups[static_cast<std::size_t>(t.index / group_lanes)]; }
};

inline int thread::lane() const { return index % home->warp_lanes; }

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
