// SPDX-License-Identifier: Apache-2.0
// Instructions of a warp that a caller's model computes: all lanes bring their registers, and when the last has come the
// model is run once for all of them. It orders no memory between the lanes, as the devices' instructions do not.
//
//     struct registers { const std::uint32_t* a; const std::uint32_t* b; float* d; } mine{a, b, d};
//     sim::matrix_instruction("mma m16n8k32", mine, [](std::span<registers* const> lanes) { ... });
//
// The pointers lead to other lanes' stacks, which stand still meanwhile.
#pragma once

#include <octavo/backends/sim/collective.hpp>
#include <octavo/backends/sim/machine.hpp>
#include <octavo/config.hpp>

#include <array>
#include <cstddef>
#include <span>

OCTAVO_BEGIN_NAMESPACE
namespace backends::sim {

inline int lanes_of_warp() { return this_thread().home->warp_lanes; }
inline int lane_index() { return this_thread().lane(); }
inline int warp_index() { return this_thread().index / lanes_of_warp(); }

/// `name` is for faults and, if `counted`, for report::matrix_instructions; `mine` the lane's registers, read and
/// written; model(std::span<Registers* const>) has one element per lane of the warp. A fault where not all lanes of the
/// warp come to an instruction of the same model. A parameter that must agree belongs to the type of the model.
template <class Registers, class Model>
void warp_instruction(const char* name, Registers& mine, const Model& model, const site& where = site::current(),
                      bool counted = false) {
  const warp_model run = [](const void* context, void* const* registers, int count) {
    std::array<Registers*, most_lanes> all;
    for (int lane = 0; lane < count; ++lane)
      all[static_cast<std::size_t>(lane)] = static_cast<Registers*>(registers[lane]);
    (*static_cast<const Model*>(context))(std::span<Registers* const>(all.data(), static_cast<std::size_t>(count)));
  };
  meet(collective_kind::instruction, 0, 0, {.registers = &mine}, where, {name, run, &model, counted});
}

/// The same, counted by its name.
template <class Registers, class Model>
void matrix_instruction(const char* name, Registers& mine, const Model& model, const site& where = site::current()) {
  warp_instruction(name, mine, model, where, true);
}

}  // namespace backends::sim
OCTAVO_END_NAMESPACE
