// SPDX-License-Identifier: Apache-2.0
// The functions that -fsanitize=thread makes a compiler call, and those of interface.hpp. To be included by one source of
// a program, which is compiled without the option; see octavo::sim_checked in ../target.cmake.
//
// Both g++ and clang++ are served: the former has ranges, the latter memcpy and its kind, unaligned accesses and
// read_write.
#pragma once

#include <octavo/backends/sim/checks/checker.hpp>
#include <octavo/backends/sim/checks/interface.hpp>
#include <octavo/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#if defined(__SANITIZE_THREAD__)
#error "callbacks.hpp must be compiled without -fsanitize=thread"
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#error "callbacks.hpp must be compiled without -fsanitize=thread"
#endif
#endif

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

constinit thread_local int quiet = 0;

namespace detail {

inline std::unique_ptr<checker>& active() {
  static thread_local std::unique_ptr<checker> c;
  return c;
}
inline constinit thread_local checker* running_checker = nullptr;

/// The checker, while its own accesses (in functions that the linker took from a checked source) are not looked at.
class working {
 public:
  working() { ++quiet; }
  ~working() { --quiet; }
  checker* operator->() const { return running_checker; }
  explicit operator bool() const { return running_checker != nullptr; }
};

inline void look_at(const void* p, std::size_t bytes, bool writes, const void* return_address, std::size_t alignment) {
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  if (at - running.stack < running.stack_bytes || quiet != 0 || bytes == 0) return;
  const working c;
  const std::uint64_t place = places::of(return_address);
  if (at % alignment != 0) c->check_aligned(at, alignment, place);
  c->access_at(at, bytes, writes, place);
}

}  // namespace detail

void begin_launch(const launch_description& d) {
  ++quiet;
  detail::active() = std::make_unique<checker>(d);
  detail::running_checker = detail::active().get();
  --quiet;
}
void end_launch() {
  enter_scheduler();
  detail::running_checker = nullptr;
  detail::active().reset();
  quiet = 0;
}
void begin_block(const block_description& b) { detail::working()->begin_block(b); }
void end_block(std::int64_t block) { detail::working()->end_block(block); }
void enter_thread(std::int64_t block, int thread, const void* stack, std::size_t stack_bytes) {
  detail::working()->enter(block, thread, stack, stack_bytes);
  quiet = 0;
}
void enter_scheduler() { running = {}; }

void warp_barrier(int first_thread) { detail::working()->warp_barrier(first_thread); }
void arrive_at_barrier(int id, int first_thread) { detail::working()->arrive_at_barrier(id, first_thread); }
void leave_barrier(int id, int thread) { detail::working()->leave_barrier(id, thread); }
void end_barrier(int id) { detail::working()->end_barrier(id); }
void arrive_at_phase(std::uint32_t barrier) { detail::working()->arrive_at_phase(barrier); }
void end_phase(std::int64_t block, std::uint32_t barrier) { detail::working()->end_phase(block, barrier); }
void leave_phase(std::uint32_t barrier) { detail::working()->leave_phase(barrier); }
void fence() { detail::working()->fence(); }

void atomic_access(const void* at, std::size_t bytes, access a, bool both, order how,
                   const std::source_location& where) {
  const detail::working c;
  c->atomic_access(reinterpret_cast<std::uintptr_t>(at), bytes, a == access::write, both, how, c->place_of(where));
}
void plain_access(const void* at, std::size_t bytes, access a, const std::source_location& where) {
  const detail::working c;
  c->access_at(reinterpret_cast<std::uintptr_t>(at), bytes, a == access::write, c->place_of(where));
}
std::uint32_t issue_copy(std::uint32_t barrier, const range& to, const range& from, const std::source_location& where) {
  const detail::working c;
  return c->issue_copy(barrier, to, from, c->place_of(where));
}
void finish_copy(std::int64_t block, std::uint32_t barrier, std::uint32_t copy) {
  detail::working()->finish_copy(block, barrier, copy);
}
void begin_product(int group, std::uint32_t number) { detail::working()->begin_product(group, number); }
void product_reads(std::uint32_t offset, std::size_t bytes, const std::source_location& where) {
  const detail::working c;
  c->product_reads(offset, bytes, c->place_of(where));
}
void wait_products(int group, std::uint32_t count) { detail::working()->wait_products(group, count); }
std::uint32_t issue_tensor_operation() { return detail::working()->issue_tensor_operation(); }
void tensor_operation_reads(std::uint32_t offset, std::size_t bytes, const std::source_location& where) {
  const detail::working c;
  c->tensor_operation_reads(offset, bytes, c->place_of(where));
}
void commit_tensor_operations(std::uint32_t number) { detail::working()->commit_tensor_operations(number); }
void finish_tensor_operations(std::int64_t block, int thread, std::uint32_t number, std::uint32_t barrier) {
  detail::working()->finish_tensor_operations(block, thread, number, barrier);
}
void check_aligned(const void* at, std::size_t alignment, const std::source_location& where) {
  const detail::working c;
  c->check_aligned(reinterpret_cast<std::uintptr_t>(at), alignment, c->place_of(where));
}
const char* last_writer(std::uint32_t offset) { return detail::working()->last_writer(offset); }

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
