// SPDX-License-Identifier: Apache-2.0
// The .npy reader on any bytes: it reads, or it throws npy::error. What it read, written and read again, is the same.
#include "support/npy.hpp"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace {

/// A file in memory where the system has one: the reader takes paths.
std::string scratch_path() {
  static const std::string path = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + std::string("/octavo_fuzz_") +
                                  std::to_string(getpid()) + ".npy";
  static const bool removed_at_exit = std::atexit([] { std::remove(path.c_str()); }) == 0;
  (void)removed_at_exit;
  return path;
}

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string path = scratch_path();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr);
  std::fwrite(bytes, 1, size, file);
  std::fclose(file);
  npy::array first;
  try {
    first = npy::read(path);
  } catch (const npy::error&) {
    return 0;
  }
  require(first.data.size() <= size);
  npy::write(path, first.type, first.shape, first.data.data());
  const npy::array second = npy::read(path);
  require(second.type == first.type && second.shape == first.shape && second.data == first.data);
  return 0;
}
