// SPDX-License-Identifier: Apache-2.0
// What an audit found, as a picture.
#pragma once

#include <string>
#include <vector>

#include "audit_table.hpp"

namespace cli {

/// Draws two panels into the file `png`, for every row a bar: the error of dQ, and what is left of the zero row sum of
/// dS. Empty when done, else what to warn with, where the file is called `shown`.
std::string draw_audit(const std::string& png, const std::string& shown, const std::vector<audit_row>& rows,
                       const std::string& description);

}  // namespace cli
