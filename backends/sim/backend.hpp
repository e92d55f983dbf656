// SPDX-License-Identifier: Apache-2.0
// What the backends that simulate a device share: their queues, launches and entries.
#pragma once

#include <octavo/backend/entry.hpp>
#include <octavo/backend/simulation.hpp>
#include <octavo/backends/sim/global_memory.hpp>
#include <octavo/backends/sim/runtime.hpp>
#include <octavo/tensor/status.hpp>

#include <algorithm>
#include <exception>
#include <span>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

/// A part of the queue of such a backend.
struct queue_state {
  options how{};
  std::vector<kernel_counts> kernels{};  ///< what has run
};

/// Adds a launch to what is known of its kernel.
inline void count_launch(std::vector<kernel_counts>& kernels, const char* name, const report& r) {
  auto of = std::find_if(kernels.begin(), kernels.end(), [&](const kernel_counts& k) { return k.name == name; });
  if (of == kernels.end()) of = kernels.insert(kernels.end(), kernel_counts{.name = name});
  ++of->launches;
  of->blocks += r.blocks;
  for (const auto& [instruction, count] : r.matrix_instructions) of->matrix_instructions[instruction] += count;
  of->barriers += r.named_barriers;
  of->phases += r.phases;
  of->copied_bytes += r.bulk_bytes;
  of->shared_bytes = std::max(of->shared_bytes, r.shared_bytes);
  of->races_checked = r.races_checked;
}

/// The launch_blocks of such a backend. A fault that the simulator finds is a failure of the launch.
template <class Queue, class Kernel>
status launch_blocks(Queue& on, const Kernel& kernel, const char* backend) {
  try {
    count_launch(on.kernels, name_of_kernel<Kernel>(), launch(kernel, on.how));
    return {};
  } catch (const std::exception& fault) {
    return {status_code::launch_failure, text(backend) << ": " << fault.what()};
  }
}

/// The entry of a backend whose queue has a queue_state: plain host memory, of whose extents the checker knows.
template <class B>
backend_entry entry(std::span<const std::span<const engine>> engines) {
  using queue_t = typename B::queue;
  backend_entry e = host_entry<B>(engines);
  e.memory.allocate = [](std::size_t bytes) {
    void* data = ::operator new(bytes, octavo::detail::host_alignment, std::nothrow);
    if (data != nullptr) global_memory::add(data, bytes);
    return data;
  };
  e.memory.release = [](void* data) {
    global_memory::remove(data);
    ::operator delete(data, octavo::detail::host_alignment);
  };
  e.simulation.set_accumulator = [](void* queue, accumulator how) {
    static_cast<queue_t*>(queue)->how.accumulator =
        how == accumulator::model ? accumulation::model : accumulation::ideal;
  };
  e.simulation.kernels = [](void* queue) -> const std::vector<kernel_counts>& {
    return static_cast<queue_t*>(queue)->kernels;
  };
  return e;
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
