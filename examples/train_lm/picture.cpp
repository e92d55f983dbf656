// SPDX-License-Identifier: Apache-2.0
// curves.png: per arm the mean over seeds, in a band from the lowest to the highest seed.
#include "../support/picture.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>

#include "report.hpp"

namespace train_lm {
namespace {

/// Okabe and Ito's colours, which all readers can tell apart.
constexpr const char* colours[] = {"#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7"};
static_assert(std::size(colours) == std::size(arm_keys));

/// Mean and extremes over the seeds of an arm at one point of the curve.
struct spread {
  double sum = 0, least = std::numeric_limits<double>::max(), most = 0;
  int count = 0;

  void add(double x) {
    sum += x;
    least = std::min(least, x);
    most = std::max(most, x);
    ++count;
  }
  void print(std::ostream& out) const { out << ' ' << sum / count << ' ' << least << ' ' << most; }
};

/// A gnuplot data block: step, then mean, least and most of the loss and of the worst layer's residual. Each point is
/// the mean over a window of steps, for the loss of a single batch hides the differences between arms.
void data_block(std::ostream& out, std::size_t arm, const std::vector<run_result>& runs, const options& o) {
  constexpr int points = 50;
  const int window = std::max(1, o.steps / points);
  out << "$arm" << arm << " << EOD\n";
  for (int begin = 0; begin + window <= o.steps; begin += window) {
    spread loss, residual;
    for (const run_result& run : runs) {
      if (run.arm != arm || static_cast<int>(run.steps.size()) < begin + window) continue;
      double mean_loss = 0;
      std::vector<double> mean_row_sum(static_cast<std::size_t>(o.shape.layers), 0.0);
      for (int step = begin; step < begin + window; ++step) {
        const step_record& r = run.steps[static_cast<std::size_t>(step)];
        mean_loss += r.loss / window;
        for (std::size_t l = 0; l < mean_row_sum.size(); ++l) mean_row_sum[l] += r.row_sum[l] / window;
      }
      loss.add(mean_loss);
      residual.add(*std::ranges::max_element(mean_row_sum));
    }
    if (loss.count == 0) break;  // every run of the arm has diverged before this window
    out << begin + 0.5 * window;
    loss.print(out);
    residual.print(out);
    out << '\n';
  }
  out << "EOD\n";
}

/// One panel: bands first, so that the lines lie on top of them.
void panel(std::ostream& out, const std::vector<arm>& arms, int column) {
  const char* separator = "plot";
  for (std::size_t a = 0; a < arms.size(); ++a, separator = ",")
    out << separator << " $arm" << a << " using 1:" << column + 1 << ':' << column + 2
        << " with filledcurves fillcolor rgb '" << colours[a] << "' fillstyle transparent solid 0.15 notitle";
  for (std::size_t a = 0; a < arms.size(); ++a)
    out << ", $arm" << a << " using 1:" << column << " with lines linewidth 2 linecolor rgb '" << colours[a]
        << "' title '" << arms[a].name << "'";
  out << '\n';
}

}  // namespace

std::string draw_curves(const std::filesystem::path& file, const std::vector<run_result>& runs,
                        const std::vector<arm>& arms, const options& o) {
  std::ostringstream body;
  for (std::size_t a = 0; a < arms.size(); ++a) data_block(body, a, runs, o);
  body << "set multiplot layout 1,2\n"
          "set grid linecolor rgb '#dddddd'\nset border 3\nset tics nomirror\nset xlabel 'step'\n"
          "set key outside bottom center horizontal\n"
          "set title 'Training loss, nats per byte (line: mean over seeds; band: seeds)'\n";
  panel(body, arms, 2);
  body << "set title 'Row-sum residual of dS, worst layer (0 in exact arithmetic)'\n"
          "set logscale y\nset format y '%.0e'\n";
  panel(body, arms, 5);
  body << "unset multiplot\n";
  return picture::draw(file.string(), body.str(), 1400, 560);
}

}  // namespace train_lm
