// SPDX-License-Identifier: Apache-2.0
// How the program ends: four exit codes, and the exception that carries one of them with its line to main.
#pragma once

#include <octavo/tensor/status.hpp>

#include <stdexcept>
#include <string>

namespace cli {

enum class exit_code : int {
  done = 0,
  failed = 1,       ///< a launch or device failure, no memory, a full disk
  bad_input = 2,    ///< the user can fix it: an option, a file, a shape
  unsupported = 3,  ///< a sound problem that is not computed here
};

/// Ends the program with one line on standard error.
struct stop : std::runtime_error {
  stop(exit_code c, const std::string& line) : std::runtime_error(line), code(c) {}
  exit_code code;
};

[[noreturn]] inline void bad_input(const std::string& line) { throw stop(exit_code::bad_input, line); }
[[noreturn]] inline void unsupported(const std::string& line) { throw stop(exit_code::unsupported, line); }
[[noreturn]] inline void failed(const std::string& line) { throw stop(exit_code::failed, line); }

/// Returns when the library is content, else ends the program with its sentence.
inline void require(const octavo::status& s) {
  if (s.ok()) return;
  const std::string line(s.message.view());
  if (s.code == octavo::status_code::invalid_argument) bad_input(line);
  if (s.code == octavo::status_code::unsupported) unsupported(line);
  failed(line);
}

}  // namespace cli
