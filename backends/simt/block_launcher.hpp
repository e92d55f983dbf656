// SPDX-License-Identifier: Apache-2.0
// Runs kernels of a pass one after another on the caller's queue.
#pragma once

#include <octavo/algorithm/passes.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::simt {

/// Runs kernels until one fails: schedules by blocks (B::launch_blocks), the rest as every backend does.
template <class B>
class block_launcher {
 public:
  block_launcher(typename B::queue& queue, const problem& p, void* scratch) : queue_(queue), rows_(queue, p, scratch) {}

  template <class Kernel>
  void run(const Kernel& kernel) {
    if (!status().ok()) return;
    if constexpr (requires { B::trace(Kernel::name); }) B::trace(Kernel::name);
    status_ = B::launch_blocks(queue_, kernel);
  }
  /// A kernel of algorithm/ that takes no tiles.
  template <class Kernel>
  void run_rows(const Kernel& kernel) {
    if (status().ok()) rows_.run(kernel);
  }
  octavo::status status() const { return status_.ok() ? rows_.status() : status_; }

 private:
  typename B::queue& queue_;
  detail::launcher<B> rows_;
  octavo::status status_;
};

}  // namespace backends::simt
OCTAVO_END_NAMESPACE
