// SPDX-License-Identifier: Apache-2.0
// How much memory a job takes, so that one of absurd size is refused in words and not by the operating system.
#pragma once

#include "options.hpp"

namespace train_lm {

inline constexpr double most_gigabytes = 16;

/// An estimate in GiB: the runs that go side by side, and the records of all.
double gigabytes_of(const options& o);

}  // namespace train_lm
