// SPDX-License-Identifier: Apache-2.0
// Progress of several runs at a time, on standard error: one line that renews itself on a terminal, else one line per
// finished run, so that a log stays short.
#pragma once

#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <unistd.h>

namespace train_lm {

class progress {
 public:
  explicit progress(long total_steps) : total_(total_steps) {}
  ~progress() { clear(); }

  void step(const std::string& run, int step, double loss) {
    const std::lock_guard lock(mutex_);
    ++done_;
    const auto now = clock::now();
    if (!terminal_ || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    const double left = seconds * static_cast<double>(total_ - done_) / static_cast<double>(done_);
    std::fprintf(stderr, "\r%3ld %%, about %.0f s left | %s, step %d, loss %.3f\033[K", 100 * done_ / total_, left,
                 run.c_str(), step + 1, loss);
  }

  /// Steps that a run left out count as done.
  void finished(const std::string& run, double held_out_loss, double seconds, long skipped) {
    const std::lock_guard lock(mutex_);
    done_ += skipped;
    clear();
    std::fprintf(stderr, "%-36s held-out loss %.4f  (%.1f s)\n", run.c_str(), held_out_loss, seconds);
  }

 private:
  using clock = std::chrono::steady_clock;
  void clear() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

  std::mutex mutex_;
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const long total_;
  long done_ = 0;
  const clock::time_point begin_ = clock::now();
  clock::time_point shown_{};
};

}  // namespace train_lm
