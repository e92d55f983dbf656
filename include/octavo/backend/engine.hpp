// SPDX-License-Identifier: Apache-2.0
// Run-time choice: a compiled config behind plain function pointers, and a backend behind a table of them.
//
// Programs that pick a recipe or a backend from a command line keep a list of engines; the templates underneath are the
// same as those of <octavo/attention.hpp>. Tensors are whatever memory the backend reads: see memory_functions.
#pragma once

#include <octavo/attention.hpp>
#include <octavo/backend/simulation.hpp>

#include <cstddef>
#include <span>
#include <string_view>

OCTAVO_BEGIN_NAMESPACE

/// One compiled config. `queue` is the backend's own queue object, from backend_entry::make_queue.
struct engine {
  std::string_view backend, recipe, delta;
  bool e5m2_gradients = false;
  support (*supports)(const problem&) = nullptr;
  std::size_t (*workspace_size)(const problem&, pass) = nullptr;
  status (*forward)(void* queue, const problem&, const forward_inputs&, const forward_outputs&, workspace) = nullptr;
  status (*backward)(void* queue, const problem&, const backward_inputs&, const backward_outputs&, workspace) = nullptr;
  status (*delta_sums)(void* queue, const problem&, const backward_inputs&, const delta_outputs&, workspace) = nullptr;
  status (*combine)(void* queue, const problem&, const partial_forward*, int, const forward_outputs&,
                    workspace) = nullptr;
};

namespace detail {

/// The public functions of a config with the queue's type erased. (Members, not lambdas: nvcc 13's front end crashes on
/// lambdas here.)
template <class Config>
struct engine_functions {
  using queue = typename Config::backend::queue;

  static support supports(const problem& p) { return octavo::supports<Config>(p); }
  static std::size_t workspace_size(const problem& p, pass which) { return octavo::workspace_size<Config>(p, which); }
  static status forward(void* q, const problem& p, const forward_inputs& in, const forward_outputs& out, workspace w) {
    return attention_forward<Config>(*static_cast<queue*>(q), p, in, out, w);
  }
  static status backward(void* q, const problem& p, const backward_inputs& in, const backward_outputs& out,
                         workspace w) {
    return attention_backward<Config>(*static_cast<queue*>(q), p, in, out, w);
  }
  static status delta_sums(void* q, const problem& p, const backward_inputs& in, const delta_outputs& out,
                           workspace w) {
    return attention_delta<Config>(*static_cast<queue*>(q), p, in, out, w);
  }
  static status combine(void* q, const problem& p, const partial_forward* parts, int count, const forward_outputs& out,
                        workspace w) {
    return attention_combine<Config>(*static_cast<queue*>(q), p, parts, count, out, w);
  }
};

}  // namespace detail

/// The engine of a config.
template <class Config>
constexpr engine engine_of() {
  using functions = detail::engine_functions<Config>;
  engine e;
  e.backend = Config::backend::name();
  e.recipe = Config::recipe::name;
  e.delta = Config::delta::name;
  e.e5m2_gradients = recipe::has_e5m2_gradients<typename Config::recipe>;
  e.supports = &functions::supports;
  e.workspace_size = &functions::workspace_size;
  e.forward = &functions::forward;
  e.backward = &functions::backward;
  e.delta_sums = &functions::delta_sums;
  e.combine = &functions::combine;
  return e;
}

/// Where a backend's tensors live and how bytes get there. Host backends have plain memory.
struct memory_functions {
  void* (*allocate)(std::size_t bytes) = nullptr;  ///< at least 64-byte aligned; nullptr when there is none
  void (*release)(void*) = nullptr;
  status (*to_device)(void* queue, void* device, const void* host, std::size_t bytes) = nullptr;
  status (*to_host)(void* queue, void* host, const void* device, std::size_t bytes) = nullptr;
};

/// A backend as a program sees it: its name, what it is, whether it can run here, and its engines.
struct backend_entry {
  std::string_view name, description{};
  bool compiled = false;
  text (*unavailable)() = nullptr;  ///< empty when it can run on this machine, else the reason
  text (*device)() = nullptr;       ///< what it runs on, for reports
  void* (*make_queue)() = nullptr;
  void (*free_queue)(void*) = nullptr;
  status (*synchronise)(void* queue) = nullptr;  ///< waits for the queue; launch errors surface here
  memory_functions memory{};
  simulation_functions simulation{};
  std::span<const std::span<const engine>> engines{};  ///< one list per recipe
  text not_compiled_reason{};

  const engine* find(std::string_view recipe, std::string_view delta, bool e5m2_gradients) const {
    for (const std::span<const engine> list : engines)
      for (const engine& e : list)
        if (e.recipe == recipe && e.delta == delta && e.e5m2_gradients == e5m2_gradients) return &e;
    return nullptr;
  }
};

OCTAVO_END_NAMESPACE
