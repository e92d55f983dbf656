// SPDX-License-Identifier: Apache-2.0
#include "jobs.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "progress.hpp"

namespace train_lm {

std::vector<run_result> train_all(const options& o, const std::vector<arm>& arms, const corpus& text) {
  std::vector<run_request> requests;
  for (int seed = 0; seed < o.seeds; ++seed)
    for (std::size_t a = 0; a < arms.size(); ++a) {
      const bool first = requests.empty();  // the baseline of seed 0, where it is among the arms
      requests.push_back({.arm = a, .seed = seed, .capture = first});
    }
  std::vector<run_result> results(requests.size());
  progress bar(static_cast<long>(requests.size()) * o.steps);
  std::atomic<std::size_t> next = 0;
  std::mutex failure_mutex;
  std::exception_ptr failure;

  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < requests.size(); i = next++) {
        const run_request& request = requests[i];
        const arm& a = arms[request.arm];
        const std::string name = a.name + ", seed " + std::to_string(request.seed);
        results[i] = train(o, a, request, text, [&](int step, double loss) { bar.step(name, step, loss); });
        bar.finished(name, results[i].held_out_loss, results[i].seconds,
                     o.steps - static_cast<long>(results[i].steps.size()));
      }
    } catch (...) {
      next = requests.size();
      const std::lock_guard lock(failure_mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> pool;
    for (std::size_t t = 1; t < std::min(static_cast<std::size_t>(o.threads), requests.size()); ++t)
      pool.emplace_back(work);
    work();
  }  // joins
  if (failure) std::rethrow_exception(failure);
  return results;
}

}  // namespace train_lm
