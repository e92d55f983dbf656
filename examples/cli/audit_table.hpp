// SPDX-License-Identifier: Apache-2.0
// What an audit found, as a table.
#pragma once

#include <string>
#include <vector>

namespace cli {

enum class audit_variant { plain, key_centring, o_residual };
const char* name_of(audit_variant variant);

/// One combination. Errors are relative L2 against float64, that of LSE is the largest difference.
struct audit_row {
  std::string recipe, delta;
  audit_variant variant = audit_variant::plain;
  std::string reason{};  ///< why it was not measured
  double o = 0, dq = 0, dk = 0, dv = 0, lse = 0, row_sum = 0;
  double forward_ms = 0, backward_ms = 0;
  std::vector<std::string> main_loops{};

  bool measured() const { return reason.empty(); }
};

/// What a row is called beside its delta policy: the recipe and the variant.
std::string label_of(const audit_row& row);

/// Aligned columns under a heading that ends in `description`; "-" where a combination was not measured, and under the
/// table why.
std::string table_of(const std::vector<audit_row>& rows, const std::string& description);

}  // namespace cli
