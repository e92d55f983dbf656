// SPDX-License-Identifier: Apache-2.0
#include "audit_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "support/picture.hpp"

namespace cli {
namespace {

std::string formatted(double x) {
  char out[32];
  std::snprintf(out, sizeof out, x != 0 && x < 1e-3 ? "%.1e" : "%.4f", x);
  return out;
}

std::string label_of(const audit_row& row) {
  return row.variant == audit_variant::plain ? row.recipe : row.recipe + " + " + name_of(row.variant);
}

const audit_row* find(const std::vector<audit_row>& rows, const std::string& label, const std::string& delta) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const audit_row& r) { return label_of(r) == label && r.delta == delta; });
  return found == rows.end() || !found->measured() ? nullptr : &*found;
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

std::string table_of(const std::vector<audit_row>& rows) {
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
  std::string out = "relative L2 error against float64 (LSE: largest difference)\n";
  for (const auto& line : cells) {
    for (std::size_t c = 0; c < line.size(); ++c) {
      const std::string padding(widths[c] - line[c].size(), ' ');
      out += (c == 0 ? "" : "  ") + (c < 2 ? line[c] + padding : padding + line[c]);  // words left, numbers right
    }
    out += '\n';
  }
  return out;
}

void draw_audit(output_folder& out, const std::vector<audit_row>& rows) {
  std::vector<std::string> labels;
  double smallest = INFINITY, largest = 0;
  for (const audit_row& row : rows) {
    if (std::find(labels.begin(), labels.end(), label_of(row)) == labels.end()) labels.push_back(label_of(row));
    if (!row.measured() || !(row.dq > 0) || !std::isfinite(row.dq)) continue;
    smallest = std::min(smallest, row.dq);
    largest = std::max(largest, row.dq);
  }
  if (largest == 0) {
    std::fputs("octavo: warning: no picture: there is no finite error of dQ above zero to draw\n", stderr);
    return;
  }

  std::string data = "$errors << END\n";
  for (const std::string& label : labels) {
    data += '"' + label + '"';
    for (const char* delta : {"stale", "matched", "consistent"}) {
      const audit_row* row = find(rows, label, delta);
      char cell[32] = " NaN";
      if (row != nullptr && row->dq > 0 && std::isfinite(row->dq)) std::snprintf(cell, sizeof cell, " %.6g", row->dq);
      data += cell;
    }
    data += '\n';
  }
  char range[96];
  std::snprintf(range, sizeof range, "set yrange [%g:%g]\n", smallest / 3, largest * 3);
  const std::string body =
      data + "END\n" + range +
      "set title 'Error of dQ against float64, by recipe and delta policy'\n"
      "set ylabel 'relative L2 error of dQ'\n"
      "set logscale y\nset format y '%g'\nset grid ytics lc rgb '#cccccc'\nset key outside top right title 'delta'\n"
      "set style data histogram\nset style histogram clustered gap 1\nset style fill solid 0.9 noborder\n"
      "set boxwidth 0.9\nset xtics rotate by -20 nomirror\nset bmargin 5\n"
      "plot $errors using 2:xtic(1) title 'stale' lc rgb '#c44e52', '' using 3 title 'matched' lc rgb '#4c72b0', "
      "'' using 4 title 'consistent' lc rgb '#55a868'\n";
  const std::string png = out.add("audit.png");
  if (const std::string warning = picture::draw(png, body); !warning.empty()) {
    std::fprintf(stderr, "octavo: warning: %s\n", warning.c_str());
    out.drop("audit.png");
  }
}

}  // namespace cli
