// SPDX-License-Identifier: Apache-2.0
// How much memory the process has held at once.
#pragma once

#include <fstream>
#include <string>
#include <sys/resource.h>

namespace cli {

/// The largest resident size since the start, or since the last reset, in MiB.
inline double peak_memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kib = 0; word == "VmHWM:" && status >> kib) return kib / 1024;
  rusage usage{};  // without /proc: never falls, a reset has no effect
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// Begins a new peak at the present size; where Linux cannot do that, the old peak goes on.
inline void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace cli
