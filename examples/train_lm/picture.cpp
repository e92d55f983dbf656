// SPDX-License-Identifier: Apache-2.0
// curves.png: per arm the mean over seeds, in a band from the lowest to the highest seed. The arms' losses lie on top
// of each other, so a panel of its own shows what each adds to that of bf16.
#include "../support/picture.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <sstream>

#include "report.hpp"

namespace train_lm {
namespace {

/// Curves lie on top of each other: each is thinner than the one below and has gaps, so that all of them show.
struct style {
  const char* colour;  // of Okabe and Ito's, which all readers can tell apart
  double width;
  const char* dashes;
};
constexpr style styles[] = {{"#BBBBBB", 6, "solid"},  // the baseline, a road on which the others run
                            {"#D55E00", 3, "solid"},
                            {"#0072B2", 2.4, "(6,6)"},
                            {"#009E73", 2, "(4,9)"},
                            {"#000000", 1.2, "(12,12)"}};
static_assert(std::size(styles) == std::size(arm_keys));

/// Mean and extremes over the seeds of an arm at one point of the curve.
class spread {
 public:
  void add(double x) {
    if (std::isnan(x)) return;  // a row-sum residual that does not exist
    mean_.add(x);
    least_ = std::min(least_, x);
    most_ = std::max(most_, x);
  }
  void print(std::ostream& out) const { out << ' ' << mean_.value() << ' ' << least_ << ' ' << most_; }

 private:
  mean_of_numbers mean_;
  double least_ = std::numeric_limits<double>::max(), most_ = std::numeric_limits<double>::lowest();
};

/// The steps begin, ..., end - 1, of which a curve shows the mean: the loss of a single batch hides the arms.
struct window {
  std::size_t begin, end;

  bool inside(const run_result& run) const { return end <= run.steps.size(); }

  double loss(const run_result& run) const {
    mean_of_numbers mean;
    for (std::size_t step = begin; step < end; ++step) mean.add(run.steps[step].loss);
    return mean.value();
  }
  /// Of the layer where it is largest.
  double row_sum(const run_result& run) const {
    double worst = std::numeric_limits<double>::quiet_NaN();
    for (std::size_t layer = 0; layer < run.steps[begin].row_sum.size(); ++layer) {
      mean_of_numbers mean;
      for (std::size_t step = begin; step < end; ++step) mean.add(run.steps[step].row_sum[layer]);
      worst = std::fmax(worst, mean.value());
    }
    return worst;
  }
};

/// The run of arm 0 from the same weights on the same batches.
const run_result& baseline_of(const run_result& run, const std::vector<run_result>& runs) {
  return *std::ranges::find_if(runs, [&](const run_result& r) { return r.arm == 0 && r.seed == run.seed; });
}

/// A gnuplot data block. Columns: step; mean, least and most of the loss; of the residual; of the loss less arm 0's.
void data_block(std::ostream& out, std::size_t arm, const std::vector<run_result>& runs, std::size_t steps) {
  constexpr std::size_t points = 50;
  const std::size_t width = std::max<std::size_t>(1, steps / points);
  out << "$arm" << arm << " << EOD\n";
  for (window w{0, width}; w.end <= steps; w = {w.end, w.end + width}) {
    spread loss, residual, difference;
    int count = 0;
    for (const run_result& run : runs) {
      if (run.arm != arm || !w.inside(run)) continue;
      ++count;
      loss.add(w.loss(run));
      residual.add(w.row_sum(run));
      if (const run_result& base = baseline_of(run, runs); w.inside(base)) difference.add(w.loss(run) - w.loss(base));
    }
    if (count == 0) break;  // every run of the arm has diverged before this window
    out << static_cast<double>(w.begin) + 0.5 * static_cast<double>(width);
    for (const spread& s : {loss, residual, difference}) s.print(out);
    out << '\n';
  }
  out << "EOD\n";
}

/// One panel: bands first, so that the lines lie on top of them.
void panel(std::ostream& out, const std::vector<arm>& arms, const char* title, int column) {
  out << "set title '" << title << "'\n";
  const char* separator = "plot";
  for (std::size_t a = 0; a < arms.size(); ++a, separator = ",")
    out << separator << " $arm" << a << " using 1:" << column + 1 << ':' << column + 2
        << " with filledcurves fillcolor rgb '" << styles[a].colour << "' fillstyle transparent solid 0.15 notitle";
  for (std::size_t a = 0; a < arms.size(); ++a)
    out << ", $arm" << a << " using 1:" << column << " with lines linewidth " << styles[a].width << " dashtype "
        << styles[a].dashes << " linecolor rgb '" << styles[a].colour << "' title '" << arms[a].name << "'";
  out << '\n';
}

}  // namespace

std::string draw_curves(const std::filesystem::path& file, const std::vector<run_result>& runs,
                        const std::vector<arm>& arms, const options& o) {
  const bool compared = arms.size() > 1 && arms.front().name == "bf16";
  std::ostringstream body;
  for (std::size_t a = 0; a < arms.size(); ++a) data_block(body, a, runs, static_cast<std::size_t>(o.steps));
  body << "set multiplot layout 1," << (compared ? 3 : 2)
       << "\nset datafile missing 'nan'\n"
          "set grid linecolor rgb '#dddddd'\nset border 3\nset tics nomirror\nset xlabel 'step'\n"
          "set key outside bottom center horizontal\n";
  panel(body, arms, "Training loss, nats per byte (line: mean over seeds; band: seeds)", 2);
  if (compared) panel(body, arms, "Training loss less that of bf16, same seed", 8);
  body << "set logscale y\nset format y '%.0e'\n";
  panel(body, arms, "Row-sum residual of dS, worst layer (0 in exact arithmetic)", 5);
  body << "unset multiplot\n";
  return picture::draw(file.string(), body.str(), compared ? 1800 : 1200, 560);
}

}  // namespace train_lm
