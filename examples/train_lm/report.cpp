// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <cmath>
#include <cstdio>
#include <iomanip>
#include <sstream>

#include "output_folder.hpp"

namespace train_lm {
namespace {

std::ostringstream table() {
  std::ostringstream out;
  out << std::setprecision(7);
  return out;
}

void row_sum_columns(std::ostream& out, index layers) {
  for (index l = 0; l < layers; ++l) out << ",rowsum_layer" << l;
  out << '\n';
}

/// "-" for what does not exist.
std::string number(const char* format, double x) {
  if (std::isnan(x)) return "-";
  char text[32];
  std::snprintf(text, sizeof text, format, x);
  return text;
}

}  // namespace

void write_curves(const std::filesystem::path& file, const std::vector<run_result>& runs, const std::vector<arm>& arms,
                  index layers) {
  std::ostringstream out = table();
  out << "seed,arm,step,loss,grad_norm";
  row_sum_columns(out, layers);
  for (const run_result& run : runs)
    for (std::size_t step = 0; step < run.steps.size(); ++step) {
      const step_record& r = run.steps[step];
      out << run.seed << ',' << arms[run.arm].name << ',' << step << ',' << r.loss << ',' << r.gradient_norm;
      for (const double x : r.row_sum) out << ',' << x;
      out << '\n';
    }
  write_text(file, out.str());
}

void write_summary(const std::filesystem::path& file, const std::vector<run_result>& runs, const std::vector<arm>& arms,
                   index layers) {
  std::ostringstream out = table();
  out << "arm,seed,held_out_loss,largest_grad_norm,seconds";
  row_sum_columns(out, layers);
  for (const run_result& run : runs) {
    out << arms[run.arm].name << ',' << run.seed << ',' << run.held_out_loss << ',' << largest_gradient_norm(run) << ','
        << run.seconds;
    for (const double x : tail_row_sum(run, layers)) out << ',' << x;
    out << '\n';
  }
  write_text(file, out.str());
}

void print_table(const std::vector<arm_summary>& arms, const options& o, const corpus& text) {
  const auto cell = [](int width, const std::string& s) { std::printf("  %*s", width, s.c_str()); };
  std::printf("\n%-28s", "held-out loss, nats per byte");
  for (int seed = 0; seed < o.seeds; ++seed) cell(7, "seed " + std::to_string(seed));
  cell(7, "mean");
  cell(8, "- bf16");
  cell(9, "threshold");
  std::printf("  %-22s", "verdict");
  cell(11, "row sum / L1");
  cell(13, "gradient norm");
  std::printf("\n");
  for (const arm_summary& a : arms) {
    std::printf("%-28s", a.name.c_str());
    for (const double x : a.held_out) cell(7, number("%.4f", x));
    cell(7, number("%.4f", a.mean));
    cell(8, a.verdict.empty() ? "" : number("%+.4f", a.difference));
    cell(9, a.verdict.empty() ? "" : number("%.4f", a.threshold));
    std::printf("  %-22s", a.verdict.c_str());
    cell(12, number("%.1e", a.worst_row_sum));
    cell(13, number("%.2f", a.gradient_norm));
    std::printf("\n");
  }
  std::printf(
      "\nText: %zu bytes, unigram entropy %.4f nats per byte.\n"
      "verdict: Student's t-test at 5 %%, two-sided. A difference of means counts when it is larger than the "
      "threshold\n"
      "t(.975, 2n - 2) * sd * sqrt(2 / n) over n seeds, sd pooled over the two arms; else it is \"inside seed "
      "noise\".\n"
      "row sum / L1: sum_i |sum_j dS_ij| / sum_ij |dS_ij|, 0 in exact arithmetic; mean over the last tenth of the\n"
      "steps and over seeds, in the worst layer; - where dS is no more than FP32 rounding noise.\n"
      "gradient norm: the largest after the first step, before clipping.\n",
      text.bytes(), text.unigram_entropy());
}

}  // namespace train_lm
