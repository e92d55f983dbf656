// SPDX-License-Identifier: Apache-2.0
// What can go wrong, by exit code. Everything else that is thrown is a failure of the run: exit code 1.
#pragma once

#include <stdexcept>

namespace train_lm {

/// An option, a file or a text that cannot be used: exit code 2.
struct input_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A problem that octavo does not compute, with its reason: exit code 3.
struct unsupported_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace train_lm
