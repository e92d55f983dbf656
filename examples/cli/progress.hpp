// SPDX-License-Identifier: Apache-2.0
// One line of progress on standard error, where a person is watching: nothing is printed unless it is a terminal.
#pragma once

#include <cstdio>
#include <string>
#include <unistd.h>

namespace cli {

class progress {
 public:
  progress() : shown_(isatty(STDERR_FILENO) != 0) {}
  ~progress() { clear(); }
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void step(const std::string& what) const {
    if (shown_) std::fprintf(stderr, "\r\033[K%s ...", what.c_str());
  }
  void clear() const {
    if (shown_) std::fputs("\r\033[K", stderr);
  }

 private:
  bool shown_;
};

}  // namespace cli
