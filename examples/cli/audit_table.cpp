// SPDX-License-Identifier: Apache-2.0
#include "audit_table.hpp"

#include <algorithm>
#include <cstdio>

namespace cli {
namespace {

std::string formatted(double x) {
  char out[32];
  std::snprintf(out, sizeof out, x != 0 && x < 1e-3 ? "%.1e" : "%.4f", x);
  return out;
}

/// The reasons of the rows that were not measured, each once, with the rows that it holds for.
std::string reasons_of(const std::vector<audit_row>& rows) {
  struct entry {
    std::string reason, rows, last_label;  // rows: "mx32 stale/matched, token stale"
  };
  std::vector<entry> reasons;
  for (const audit_row& row : rows) {
    if (row.measured()) continue;
    auto found = std::find_if(reasons.begin(), reasons.end(), [&](const auto& e) { return e.reason == row.reason; });
    if (found == reasons.end()) found = reasons.insert(found, {row.reason, {}, {}});
    const std::string label = label_of(row);
    const bool same_label = found->last_label == label;
    found->rows += (found->rows.empty() ? "" : same_label ? "/" : ", ") + (same_label ? "" : label + " ") + row.delta;
    found->last_label = label;
  }
  if (reasons.empty()) return {};
  std::string out = "\nnot measured:\n";
  for (const entry& e : reasons) out += "  " + e.rows + ": " + e.reason + "\n";
  return out;
}

}  // namespace

const char* name_of(audit_variant variant) {
  switch (variant) {
    case audit_variant::key_centring:
      return "key centring";
    case audit_variant::o_residual:
      return "O residual";
    default:
      return "plain";
  }
}

std::string label_of(const audit_row& row) {
  return row.variant == audit_variant::plain ? row.recipe : row.recipe + " + " + name_of(row.variant);
}

std::string table_of(const std::vector<audit_row>& rows, const std::string& description) {
  std::vector<std::vector<std::string>> cells{{"recipe", "delta", "O", "dQ", "dK", "dV", "LSE", "row sum/L1"}};
  for (const audit_row& row : rows) {
    std::vector<std::string> line{label_of(row), row.delta};
    for (const double x : {row.o, row.dq, row.dk, row.dv, row.lse, row.row_sum})
      line.push_back(row.measured() ? formatted(x) : "-");
    cells.push_back(std::move(line));
  }
  std::vector<std::size_t> widths(cells[0].size(), 0);
  for (const auto& line : cells)
    for (std::size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
  std::string out = "relative L2 error against float64 (LSE: largest difference); " + description + "\n";
  for (const auto& line : cells) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - line[c].size(), ' ');
      out += (c == 0 ? "" : "  ") + (c < 2 ? line[c] + padding : padding + line[c]);  // words left, numbers right
    }
    out += '\n';
  }
  return out + reasons_of(rows);
}

}  // namespace cli
