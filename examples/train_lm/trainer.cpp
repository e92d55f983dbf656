// SPDX-License-Identifier: Apache-2.0
#include "trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "model.hpp"
#include "optimiser.hpp"
#include "schedule.hpp"

namespace train_lm {
namespace {

constexpr double clip_norm = 1.0;

double held_out_loss(model& m, const std::vector<batch>& windows) {
  double sum = 0;
  for (const batch& b : windows) sum += m.forward(b);
  return sum / static_cast<double>(windows.size());
}

}  // namespace

run_result train(const options& o, const arm& a, const run_request& request, const corpus& text,
                 const step_observer& observe) {
  const auto begin = std::chrono::steady_clock::now();
  const auto seed = static_cast<std::uint32_t>(request.seed);
  model m(o.shape, a, random_source(seed, stream::initialisation));
  adamw optimiser(m.weights);
  random_source batches(seed, stream::batches);  // the same batches for every arm of a seed
  batch data;

  run_result result{.arm = request.arm, .seed = request.seed};
  for (int step = 0; step < o.steps; ++step) {
    text.draw(batches, o.shape, data);
    step_record record{.loss = m.forward(data)};
    m.backward(data);
    record.gradient_norm = adamw::clip(m.gradients, clip_norm);
    if (!std::isfinite(record.loss) || !std::isfinite(record.gradient_norm)) break;
    for (index i = 0; i < o.shape.layers; ++i) record.row_sum.push_back(m.attention_of_layer(i).row_sum_residual());
    optimiser.step(m.weights, m.gradients, learning_rate(o.rate, o.schedule, step, o.steps));
    observe(step, record.loss);
    result.steps.push_back(std::move(record));
  }
  if (result.diverged(o.steps)) {
    result.held_out_loss = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (request.capture) result.captured = std::make_shared<captured_tensors>(m);  // before other forwards
    result.held_out_loss = held_out_loss(m, text.held_out(o.shape));
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace train_lm
