// SPDX-License-Identifier: Apache-2.0
// A GPU thread is a fiber: a stack of its own and a place to go on from. Stacks are kept and used again, since a block
// has hundreds and a launch thousands of them. Needs Boost.Context (link boost_context).
#pragma once

#include <octavo/config.hpp>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <new>
#include <sys/mman.h>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define OCTAVO_SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OCTAVO_SIM_ASAN 1
#endif
#endif
#if defined(OCTAVO_SIM_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// Kernels keep their registers on the stack, up to 1 KB of accumulators each time they are copied.
#if defined(OCTAVO_SIM_ASAN)
inline constexpr std::size_t stack_bytes = 512 << 10;  // red zones around every array
#else
inline constexpr std::size_t stack_bytes = 128 << 10;
#endif
inline constexpr std::size_t guard_bytes = 4096;  ///< below the stack, so that an overflow stops the program

struct stack {
  char* bottom = nullptr;
  char* top() const { return bottom + stack_bytes; }
};

/// Stacks that no fiber uses.
class stack_pool {
 public:
  stack take() {
    if (free_.empty()) return map();
    const stack s = free_.back();
    free_.pop_back();
#if defined(OCTAVO_SIM_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(s.bottom, stack_bytes);  // its last user may have been left in the middle
#endif
    return s;
  }
  void give(stack s) { free_.push_back(s); }

  stack_pool() = default;
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;
  ~stack_pool() {
    for (const stack& s : free_) munmap(s.bottom - guard_bytes, guard_bytes + stack_bytes);
  }

 private:
  static stack map() {
    void* memory = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory, guard_bytes, PROT_NONE);
    return {static_cast<char*>(memory) + guard_bytes};
  }

  std::vector<stack> free_;
};

inline stack_pool& stacks() {
  static thread_local stack_pool pool;
  return pool;
}

/// One side of a switch: a fiber, or the scheduler on the program's own stack.
struct fiber {
  boost::context::detail::fcontext_t context = nullptr;
  stack memory{};
#if defined(OCTAVO_SIM_ASAN)
  void* fake_stack = nullptr;
  const void* bottom = nullptr;
  std::size_t size = 0;
#endif

  void start(void (*entry)(boost::context::detail::transfer_t)) {
    memory = stacks().take();
    context = boost::context::detail::make_fcontext(memory.top(), stack_bytes, entry);
#if defined(OCTAVO_SIM_ASAN)
    fake_stack = nullptr;
    bottom = memory.bottom;
    size = stack_bytes;
#endif
  }
  void release() {
    if (memory.bottom != nullptr) stacks().give(memory);
    memory = {};
  }
};

/// Leaves `from` and goes on in `to`; returns when something switches back.
inline void switch_fiber(fiber& from, fiber& to, bool from_ends = false) {
#if defined(OCTAVO_SIM_ASAN)
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &from.fake_stack, to.bottom, to.size);
#else
  (void)from_ends;
#endif
  const boost::context::detail::transfer_t back = boost::context::detail::jump_fcontext(to.context, &from);
  static_cast<fiber*>(back.data)->context = back.fctx;
#if defined(OCTAVO_SIM_ASAN)
  fiber& other = *static_cast<fiber*>(back.data);
  __sanitizer_finish_switch_fiber(from.fake_stack, &other.bottom, &other.size);
#endif
}

/// The first thing in a fiber's entry.
inline void arrive_in_fiber(boost::context::detail::transfer_t came) {
  static_cast<fiber*>(came.data)->context = came.fctx;
#if defined(OCTAVO_SIM_ASAN)
  fiber& other = *static_cast<fiber*>(came.data);
  __sanitizer_finish_switch_fiber(nullptr, &other.bottom, &other.size);
#endif
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
