// SPDX-License-Identifier: Apache-2.0
// What the simulator tells the checker of memory accesses (checker.hpp), and how a program comes to have one.
//
// The checker sees the plain reads and writes of a kernel where its source is compiled with -fsanitize=thread: the
// compiler then calls a function before each of them. callbacks.hpp defines these functions in the place of the
// sanitizer's library, in one source that is compiled without the option. CMake's octavo::sim_checked does all this; it
// defines OCTAVO_SIM_CHECKED, without which the functions below are never called and cost nothing.
//
// This header is all that the two sides share.
#pragma once

#include <octavo/config.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

#if defined(OCTAVO_SIM_CHECKED)
inline constexpr bool on = true;
#else
inline constexpr bool on = false;
#endif

struct range {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

struct launch_description {
  const char* kernel = nullptr;
  const range* buffers = nullptr;  ///< of global memory. If there are none, only shared memory is looked at
  std::size_t buffer_count = 0;
  range kernel_object{}, machine{};
  bool races = true;
  void (*fail)(const char* sentence) = nullptr;  ///< ends the launch; does not return
};

struct block_description {
  std::int64_t index = 0;
  int threads = 0, warp_lanes = 0, group_threads = 0;
  range shared{};     ///< what the kernel asked for
  range allocated{};  ///< what holds it: an access in there and not in `shared` is out of bounds
  range threads_at{}, block_at{};
};

enum class access : std::uint8_t { read, write };
enum class order : std::uint8_t { none, relaxed, acquire, release, acquire_release };

/// Accesses are not looked at while this is above 0: the simulator's own.
extern constinit thread_local int quiet;

void begin_launch(const launch_description&);
void end_launch();
void begin_block(const block_description&);
void end_block(std::int64_t block);
/// From here on the program is this thread's, or the scheduler's.
void enter_thread(std::int64_t block, int thread, const void* stack, std::size_t stack_bytes);
void enter_scheduler();

// Order between threads of a block. The running thread's block, unless one is given.
void warp_barrier(int first_thread);               ///< all lanes of the warp have come
void arrive_at_barrier(int id, int first_thread);  ///< all lanes of a warp
void leave_barrier(int id, int thread);            ///< that waited, when all have come
void end_barrier(int id);                          ///< after all who waited have left
void arrive_at_phase(std::uint32_t barrier);       ///< barriers in shared memory, by their offset
void end_phase(std::int64_t block, std::uint32_t barrier);
void leave_phase(std::uint32_t barrier);

// Between all threads.
void fence();
/// An access that no other atomic access races with; what it orders is what its order and fences around it say (none:
/// nothing, whatever fences there are). both: it reads and writes.
void atomic_access(const void* at, std::size_t bytes, access, bool both, order, const std::source_location& where);

/// A plain access that an instruction makes, not the compiler.
void plain_access(const void* at, std::size_t bytes, access, const std::source_location& where);

// Accesses that something else makes later, between an issue and a wait. The order before is that of the issuing
// threads; the order after comes with the barrier or the wait that the thread observes.
std::uint32_t issue_copy(std::uint32_t barrier, const range& to, const range& from, const std::source_location& where);
void finish_copy(std::int64_t block, std::uint32_t barrier, std::uint32_t copy);
void begin_product(int group, std::uint32_t number);  ///< all threads of the warpgroup have issued it
void product_reads(std::uint32_t offset, std::size_t bytes, const std::source_location& where);
void wait_products(int group, std::uint32_t count);  ///< the running thread has waited for so many
std::uint32_t issue_tensor_operation();              ///< to tcgen05, by the running thread; its number there
void tensor_operation_reads(std::uint32_t offset, std::size_t bytes, const std::source_location& where);
void commit_tensor_operations(std::uint32_t number);  ///< the one just issued is a commit
/// The commit of a thread is reached: who sees the barrier's phase comes after all that was issued before it.
void finish_tensor_operations(std::int64_t block, int thread, std::uint32_t number, std::uint32_t barrier);

/// Reports a fault of the running thread where it is not aligned. For vector accesses: a compiler's own call does not
/// say what alignment the device's instruction wants.
void check_aligned(const void* at, std::size_t alignment, const std::source_location& where);

/// "thread 5 (warp 0, lane 5) of block 0 (forward.hpp:123)", who wrote a byte of the running thread's shared memory last;
/// empty where nothing has. Valid until the next call.
const char* last_writer(std::uint32_t offset);

/// While it lives, the accesses of this thread are the simulator's. (The compiler adds its calls late: without the
/// barriers it would see no one who could read `quiet`, and drop the stores.)
class unchecked {
 public:
  unchecked() {
    if constexpr (on) {
      ++quiet;
      asm volatile("" ::: "memory");
    }
  }
  ~unchecked() {
    if constexpr (on) {
      asm volatile("" ::: "memory");
      --quiet;
    }
  }
  unchecked(const unchecked&) = delete;
  unchecked& operator=(const unchecked&) = delete;
};

/// Around a switch to another fiber: every fiber has a `quiet` of its own.
class quiet_of_fiber {
 public:
  quiet_of_fiber() {
    if constexpr (on) saved_ = quiet;
  }
  ~quiet_of_fiber() {
    if constexpr (on) quiet = saved_;
  }
  quiet_of_fiber(const quiet_of_fiber&) = delete;
  quiet_of_fiber& operator=(const quiet_of_fiber&) = delete;

 private:
  int saved_ = 0;
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
