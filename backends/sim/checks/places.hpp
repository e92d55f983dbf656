// SPDX-License-Identifier: Apache-2.0
// Where in a source an access is: a return address into compiled code, which addr2line (binutils) or llvm-symbolizer
// turns into a line when a fault is reported; or the place that an instruction was given. Where neither program is
// found, the function's symbol stands in the line's place.
#pragma once

#include <octavo/config.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <source_location>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim::checks {

class places {
 public:
  static std::uint64_t of(const void* return_address) { return reinterpret_cast<std::uintptr_t>(return_address); }

  /// The file's name must live on, as those of std::source_location do.
  std::uint64_t of(const std::source_location& where) {
    for (std::size_t i = known_.size(); i-- > 0;)
      if (known_[i].first == where.file_name() && known_[i].second == where.line()) return given_bit | i;
    known_.emplace_back(where.file_name(), where.line());
    return given_bit | (known_.size() - 1);
  }

  /// "forward.hpp:123"
  std::string text(std::uint64_t at) const {
    if ((at & given_bit) == 0) return line_of(at);
    const auto& [file, line] = known_[at & ~given_bit];
    return last_part(file) + ":" + std::to_string(line);
  }

 private:
  static constexpr std::uint64_t given_bit = std::uint64_t{1} << 63;

  static std::string last_part(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? path : path.substr(slash + 1);
  }

  static std::string output_of(const std::string& command) {
    std::string all;
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return all;
    char text[512];
    while (std::fgets(text, sizeof text, pipe) != nullptr) all += text;
    pclose(pipe);
    return all;
  }

  static std::string line_of(std::uint64_t return_address) {
    const std::uint64_t call = return_address - 1;  // within the call
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(call), &info) == 0) return "at an unknown place";
    const auto base = reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    const bool moved = reinterpret_cast<const ElfW(Ehdr)*>(base)->e_type == ET_DYN;
    char numbers[32];
    std::snprintf(numbers, sizeof numbers, "0x%llx", static_cast<unsigned long long>(moved ? call - base : call));
    // The program's own name in /proc, in case it was started by a relative path.
    const bool program =
        info.dli_fname == nullptr || std::strchr(info.dli_fname, '/') == nullptr || moved_program_base() == base;
    const std::string file = program ? "/proc/" + std::to_string(getpid()) + "/exe" : info.dli_fname;
    for (const char* tool : {"addr2line -i -e '", "llvm-symbolizer --output-style=GNU -i -e '",
                             "llvm-symbolizer-19 --output-style=GNU -i -e '"}) {
      const std::string found = kernel_frame(output_of(tool + file + "' " + numbers + " 2>/dev/null"));
      if (!found.empty()) return found;
    }
    return std::string("in ") + (info.dli_sname != nullptr ? info.dli_sname : "an unknown function") + "+" + numbers;
  }

  static std::uintptr_t moved_program_base() {
    std::uintptr_t base = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* to) {
          *static_cast<std::uintptr_t*>(to) = object->dlpi_addr;
          return 1;  // the program comes first
        },
        &base);
    return base;
  }

  /// Of lines "path:number", from the innermost inlined function outwards: the first that is not of the standard
  /// library or of the simulator, which stand between a kernel and its memory.
  static std::string kernel_frame(const std::string& lines) {
    std::string innermost;
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      std::string line = lines.substr(at, end - at);
      at = end + 1;
      line = line.substr(0, line.find(" ("));  // "(discriminator 3)"
      if (line.empty() || line.find("??") != std::string::npos || line.ends_with(":0")) continue;
      if (innermost.empty()) innermost = last_part(line);
      if (line.rfind("/usr/", 0) != 0 && line.find("/backends/sim/") == std::string::npos) return last_part(line);
    }
    return innermost;
  }

  std::vector<std::pair<const char*, std::uint_least32_t>> known_{};
};

}  // namespace backends::sim::checks
OCTAVO_END_NAMESPACE
