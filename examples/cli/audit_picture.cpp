// SPDX-License-Identifier: Apache-2.0
#include "audit_picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "support/picture.hpp"

namespace cli {
namespace {

struct series {
  const char* delta;
  const char* colour;
};
constexpr series policies[] = {{"stale", "#c44e52"}, {"matched", "#4c72b0"}, {"consistent", "#55a868"}};

/// Where a row's bar stands: bars of one label side by side, a gap of one bar between labels.
struct slot {
  const audit_row* row;
  double x;
};

struct layout {
  std::vector<slot> slots;
  std::string tics;  ///< every label under the middle of its bars, as gnuplot's "set xtics" takes them
  double end = 0;
};

layout layout_of(const std::vector<audit_row>& rows) {
  std::vector<std::string> labels;
  for (const audit_row& row : rows)
    if (std::find(labels.begin(), labels.end(), label_of(row)) == labels.end()) labels.push_back(label_of(row));
  layout out;
  double x = 1;
  for (const std::string& label : labels) {
    const double first = x;
    for (const audit_row& row : rows)
      if (label_of(row) == label) out.slots.push_back({&row, x++});
    // A name of two parts is wider than a single bar: it takes two lines.
    std::string name = label;
    if (const std::size_t plus = name.find(" + "); plus != std::string::npos) name.replace(plus, 3, "\\n+ ");
    std::ostringstream tic;
    tic << (out.tics.empty() ? "" : ", ") << '"' << name << "\" " << (first + x - 1) / 2;
    out.tics += tic.str();
    ++x;
  }
  out.end = x - 1;
  return out;
}

std::string printed(const char* format, double x) {
  char out[32];
  std::snprintf(out, sizeof out, format, x);
  return out;
}

/// Two digits, as they stand above a bar.
std::string figure_of(double x) { return printed(x < 10 ? "%#.2g" : "%.0f", x); }

/// A logarithmic axis of whole decades around what is to be drawn: without a label at both ends it would say nothing.
struct decades {
  double low = 0.1, high = 1;

  decades(const std::vector<slot>& slots, double audit_row::* figure) {
    double smallest = INFINITY, largest = 0;
    for (const slot& s : slots) {
      if (!drawable(*s.row, figure)) continue;
      smallest = std::min(smallest, s.row->*figure);
      largest = std::max(largest, s.row->*figure);
    }
    if (largest == 0) return;
    low = std::pow(10.0, std::floor(std::log10(smallest / 1.5)));  // even the smallest bar can be seen,
    high = std::pow(10.0, std::ceil(std::log10(largest * 2.5)));   // and a figure fits above the largest
  }
  static bool drawable(const audit_row& row, double audit_row::* figure) {
    return row.measured() && row.*figure > 0 && std::isfinite(row.*figure);
  }
};

/// Why there is no bar.
const char* word_for(const audit_row& row, double audit_row::* figure) {
  if (!row.measured()) return "not computed";
  return row.*figure == 0 ? "0" : "not finite";
}

void panel(std::ostream& out, const layout& bars, const char* name, double audit_row::* figure) {
  const decades axis(bars.slots, figure);
  std::string plots;
  for (const series& policy : policies) {
    std::ostringstream data;
    for (const slot& s : bars.slots)
      if (s.row->delta == policy.delta && decades::drawable(*s.row, figure))
        data << s.x << ' ' << printed("%.6g", s.row->*figure) << ' ' << figure_of(s.row->*figure) << '\n';
    if (data.str().empty()) continue;  // gnuplot takes a column without a single point for an error
    const std::string block = std::string("$") + name + "_" + policy.delta;
    out << block << " << END\n" << data.str() << "END\n";
    plots += (plots.empty() ? "" : ", ") + block + " using 1:2 with boxes linecolor rgb '" + policy.colour +
             "' title '" + policy.delta + "', " + block + " using 1:2:3 with labels offset 0,0.6 font ',9' notitle";
  }
  out << "unset label\n";
  for (const slot& s : bars.slots)
    if (!decades::drawable(*s.row, figure))
      out << "set label \"" << word_for(*s.row, figure) << "\" at " << s.x << ",graph 0.03 left rotate by 90 font ',9'"
          << " textcolor rgb '#606060'\n";
  out << "set yrange [" << axis.low << ":" << axis.high << "]\n";
  out << "plot " << (plots.empty() ? "2 * " + printed("%g", axis.high) + " notitle" : plots) << '\n';
}

}  // namespace

std::string draw_audit(const std::string& png, const std::string& shown, const std::vector<audit_row>& rows,
                       const std::string& description) {
  const layout bars = layout_of(rows);
  std::ostringstream body;
  body << "set multiplot layout 2,1 title \"Attention against float64, by recipe and delta policy; " << description
       << "\\n\"\n"  // the empty second line is room for the legend
       << "set lmargin 12\nset rmargin 3\nset bmargin 3.5\n"
          "set border 3\nset tics nomirror\nset logscale y\nset format y '%g'\n"
          "set grid noxtics ytics mytics linetype 1 linecolor rgb '#b0b0b0', linetype 1 linecolor rgb '#e4e4e4'\n"
          "set style fill solid 0.9 noborder\nset boxwidth 0.9\nset key outside top right horizontal\n"
       << "set xrange [0:" << bars.end << "]\nset xtics (" << bars.tics << ") scale 0\n"
       << "set title 'Error of dQ'\nset ylabel 'relative L2 error'\n";
  panel(body, bars, "dq", &audit_row::dq);
  body << "set title 'Row sums of dS (0 in exact arithmetic)'\n"
          "set ylabel 'row sum / L1'\n";
  panel(body, bars, "row_sum", &audit_row::row_sum);
  body << "unset multiplot\n";
  return picture::draw(png, body.str(), std::max(900, static_cast<int>(60 * bars.end)), 900, shown);
}

}  // namespace cli
