// SPDX-License-Identifier: Apache-2.0
// Who runs a tile: a Kokkos team, with tiles in its scratch memory; and the loops by which a team shares a tile.
//
// Every loop ends with the team's barrier, so an operation finds what the one before it wrote, whichever thread did.
#pragma once

#include <octavo/backends/kokkos/tuning.hpp>

#include <cstddef>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// A team and its scratch memory. All threads of the team take the same tiles in the same order, so each holds the same
/// addresses. A context without a team is handed to kernels that work row by row and take no tiles.
template <class Space>
class context {
 public:
  using execution_space = Space;
  using team_member = typename Kokkos::TeamPolicy<Space>::member_type;
  static constexpr int alignment = 64;

  KOKKOS_FUNCTION context() {}
  KOKKOS_FUNCTION context(const team_member& team, int level, std::size_t bytes)
      : team_(&team), bytes_(bytes), memory_(scratch(team, level, bytes)) {}

  KOKKOS_FUNCTION const team_member& team() const { return *team_; }
  KOKKOS_FUNCTION void barrier() const { team_->team_barrier(); }

  KOKKOS_FUNCTION float* take(int count) {
    const std::size_t at = used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(float) + alignment - 1) / alignment * alignment;
    // To go on would write into another team's tiles.
    if (used_ > bytes_) Kokkos::abort("octavo kokkos: a kernel needs more tile memory than tile_bytes counted");
    return reinterpret_cast<float*>(memory_ + at);
  }
  /// Gives all tiles back, before the next item.
  KOKKOS_FUNCTION void reset() { used_ = 0; }

 private:
  /// Scratch is aligned to eight bytes; launch asks for `alignment` more, so that tiles can start on a cache line.
  KOKKOS_FUNCTION static std::byte* scratch(const team_member& team, int level, std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(team.team_scratch(level).get_shmem(bytes + alignment));
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(memory) % alignment;
    return beyond == 0 ? memory : memory + (alignment - beyond);
  }

  const team_member* team_ = nullptr;
  std::size_t bytes_ = 0, used_ = 0;
  std::byte* memory_ = nullptr;
};

/// f(n) for n < count, each by one lane of one thread.
template <class Space, class F>
KOKKOS_FUNCTION void for_each(context<Space>& c, int count, const F& f) {
  Kokkos::parallel_for(Kokkos::TeamVectorRange(c.team(), count), f);
  c.barrier();
}

/// f(i, j) for all elements of a tile: rows over the team's threads, columns over their lanes. The columns are whole
/// blocks of 32, which is said here in a form that lets compilers drop the scalar end of a vector loop.
template <class Space, class F>
KOKKOS_FUNCTION void for_elements(context<Space>& c, int rows, int columns, const F& f) {
  const int whole = columns & ~31;
  Kokkos::parallel_for(Kokkos::TeamThreadRange(c.team(), rows), [&](int i) {
    if constexpr (on_host<Space>) {
      OCTAVO_KOKKOS_INDEPENDENT
      for (int j = 0; j < whole; ++j) f(i, j);
    } else {
      Kokkos::parallel_for(Kokkos::ThreadVectorRange(c.team(), whole), [&](int j) { f(i, j); });
    }
  });
  c.barrier();
}

/// f(i0, j0) for the upper left corners of all squares of a tile.
template <class Space, class F>
KOKKOS_FUNCTION void for_squares(context<Space>& c, int rows, int columns, const F& f) {
  constexpr int edge = tuning<Space>::square;
  const int across = columns / edge;
  for_each(c, rows / edge * across, [&](int n) { f(n / across * edge, n % across * edge); });
}

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
