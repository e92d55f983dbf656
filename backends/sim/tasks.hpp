// SPDX-License-Identifier: Apache-2.0
// Operations under way that end one after the other, by the thread that issued them: at a time that the seed draws, or,
// with seed 0, only when no thread can go on.
#pragma once

#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline void issue_task(const thread& t, const site& where, std::function<void(machine&)> run) {
  machine& m = the_machine();
  auto queue = std::find_if(m.tasks.begin(), m.tasks.end(),
                            [&](const task_queue& q) { return q.home == t.home && q.issuer == t.index; });
  if (queue == m.tasks.end()) queue = m.tasks.insert(m.tasks.end(), {t.home, t.index, {}});
  queue->tasks.push_back({where, std::move(run)});
}

/// Ends the first operation of a queue.
inline void run_task(machine& m, std::size_t which) {
  const task first = std::move(m.tasks[which].tasks.front());
  m.tasks[which].tasks.pop_front();
  if (m.tasks[which].tasks.empty()) m.tasks.erase(m.tasks.begin() + static_cast<std::ptrdiff_t>(which));
  first.run(m);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
