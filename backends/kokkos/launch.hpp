// SPDX-License-Identifier: Apache-2.0
// Kernels on an execution-space instance.
//
// A main loop runs on teams that take items by ticket: an item that a team waits for (the turns of dQ) was taken by a
// team that had begun before. It is being computed, not waiting to be scheduled, so every turn ends where running teams
// all make progress (running_teams_progress; other spaces are refused). The other kernels work row by row: a range, one
// item per thread.
#pragma once

#include <octavo/backends/kokkos/tile.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// What orders the work of a call: an execution-space instance. Calls return with their work enqueued on it.
template <class Space>
struct queue {
  Space space{};
  queue() = default;
  explicit queue(const Space& instance) : space(instance) {}
};

/// The lowest level of team scratch that holds a team's tiles.
struct scratch_plan {
  int level;
  std::size_t bytes;
  std::size_t limit;  ///< of the highest level
  bool fits() const { return bytes <= limit; }
};
template <class Space>
scratch_plan plan_scratch(const problem& p) {
  using policy = Kokkos::TeamPolicy<Space>;
  const std::size_t bytes = tile_bytes(p) + context<Space>::alignment;
  const bool near = bytes <= static_cast<std::size_t>(policy::scratch_size_max(0));
  return {near ? 0 : 1, bytes, static_cast<std::size_t>(policy::scratch_size_max(1))};
}

using ticket = std::int64_t;

template <class Space>
struct first_ticket {
  ticket* next;
  KOKKOS_FUNCTION void operator()(int) const { *next = 0; }
};

/// Items by ticket until there are no more.
template <class Space, class Kernel>
struct run_tiles {
  Kernel kernel;
  std::int64_t items;
  ticket* next;
  int level;
  std::size_t bytes;

  KOKKOS_FUNCTION void operator()(const typename context<Space>::team_member& team) const {
    context<Space> ctx(team, level, bytes);
    for (;;) {
      ticket item = 0;
      Kokkos::single(
          Kokkos::PerTeam(team), [&](ticket& mine) { mine = Kokkos::atomic_fetch_add(next, ticket{1}); }, item);
      if (item >= items) return;
      ctx.reset();
      kernel(ctx, item);
    }
  }
};

template <class Space, class Kernel>
struct run_rows {
  Kernel kernel;
  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    context<Space> ctx;
    kernel(ctx, item);
  }
};

/// As many teams as run side by side: further ones would find no ticket.
template <class Space>
auto team_policy(const Space& space, std::int64_t items) {
  using policy = Kokkos::TeamPolicy<Space>;
  constexpr int lanes = tuning<Space>::vector_length;
  const std::int64_t side_by_side = space.concurrency() / lanes > 1 ? space.concurrency() / lanes : 1;
  const int teams = static_cast<int>(items < side_by_side ? items : side_by_side);
  if constexpr (on_host<Space>)
    return policy(space, teams, 1, lanes);
  else
    return policy(space, teams, Kokkos::AUTO, lanes);
}

/// Runs kernel(context, item) for all items. tickets: memory for one ticket, for kernels with tiles.
template <class Kernel, class Space>
void launch(const Space& space, const problem& p, void* tickets, std::int64_t items, const Kernel& kernel) {
  // Main loops have names, for the trace; they are the kernels that take tiles.
  if constexpr (requires { Kernel::name; }) {
    const scratch_plan plan = plan_scratch<Space>(p);
    auto* const next = static_cast<ticket*>(tickets);
    Kokkos::parallel_for("octavo first ticket", Kokkos::RangePolicy<Space>(space, 0, 1), first_ticket<Space>{next});
    Kokkos::parallel_for(
        Kernel::name,
        team_policy(space, items).set_scratch_size(plan.level, Kokkos::PerTeam(static_cast<int>(plan.bytes))),
        run_tiles<Space, Kernel>{kernel, items, next, plan.level, tile_bytes(p)});
  } else {
    using index = Kokkos::IndexType<std::int64_t>;
    Kokkos::parallel_for("octavo rows", Kokkos::RangePolicy<Space, index>(space, 0, items),
                         run_rows<Space, Kernel>{kernel});
  }
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
