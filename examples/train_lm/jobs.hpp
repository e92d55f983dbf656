// SPDX-License-Identifier: Apache-2.0
// All runs of a job, several at a time. Runs share nothing but the text, so the number of threads changes no result.
#pragma once

#include <vector>

#include "trainer.hpp"

namespace train_lm {

/// Results by seed, then by arm. An exception in a run stops the others after their own and is thrown here.
std::vector<run_result> train_all(const options& o, const std::vector<arm>& arms, const corpus& text);

}  // namespace train_lm
