// SPDX-License-Identifier: Apache-2.0
// From a backend class to its backend_entry and engines: what the sources of octavo_add_engines are made of.
#pragma once

#include <octavo/backend/engine.hpp>
#include <octavo/backend/trace.hpp>

#include <array>
#include <cstring>
#include <new>
#include <span>
#include <type_traits>

OCTAVO_BEGIN_NAMESPACE

namespace detail {

/// One engine per delta policy that the recipe has. None where the backend has the recipe, but not with E5M2 gradients.
template <class B, class Recipe>
constexpr auto make_engines() {
  constexpr bool no_e5m2 = recipe::has_e5m2_gradients<Recipe> && !B::template computes<Recipe>;
  constexpr bool consistent = recipe::has_power_of_two_scales<Recipe> || std::is_same_v<Recipe, recipe::exact>;
  if constexpr (no_e5m2) {
    return std::array<engine, 0>{};
  } else if constexpr (consistent) {
    return std::array{engine_of<config<B, Recipe, delta::stale>>(), engine_of<config<B, Recipe, delta::matched>>(),
                      engine_of<config<B, Recipe, delta::consistent>>()};
  } else {
    return std::array{engine_of<config<B, Recipe, delta::stale>>(), engine_of<config<B, Recipe, delta::matched>>()};
  }
}

template <class B, class Recipe>
inline constexpr auto engines = make_engines<B, Recipe>();

inline constexpr std::align_val_t host_alignment{64};

inline status copy_on_host(void*, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);  // memcpy wants valid pointers even for nothing
  return {};
}

}  // namespace detail

template <class B, class Recipe>
constexpr std::span<const engine> engines_of() {
  return detail::engines<B, Recipe>;
}

/// The entry of a backend that reads plain host memory. Its queue is default-constructible. A backend whose calls
/// return before their work is done has a static status synchronise(queue&).
template <class B>
backend_entry host_entry(std::span<const std::span<const engine>> engines) {
  using queue_t = typename B::queue;
  backend_entry e;
  e.name = B::name();
  e.compiled = true;
  e.unavailable = []() -> text { return B::unavailable(); };
  e.device = []() -> text { return B::device(); };
  e.make_queue = []() -> void* { return new (std::nothrow) queue_t; };
  e.free_queue = [](void* queue) { delete static_cast<queue_t*>(queue); };
  e.synchronise = []([[maybe_unused]] void* queue) -> status {
    if constexpr (requires(queue_t& q) { B::synchronise(q); })
      return B::synchronise(*static_cast<queue_t*>(queue));
    else
      return {};
  };
  e.memory.allocate = [](std::size_t bytes) { return ::operator new(bytes, detail::host_alignment, std::nothrow); };
  e.memory.release = [](void* data) { ::operator delete(data, detail::host_alignment); };
  e.memory.to_device = detail::copy_on_host;
  e.memory.to_host = detail::copy_on_host;
  e.engines = engines;
  return e;
}

/// A backend that is known by name only.
inline backend_entry not_compiled(std::string_view name, std::string_view description, text reason) {
  backend_entry e;
  e.name = name;
  e.description = description;
  e.not_compiled_reason = reason;
  return e;
}

OCTAVO_END_NAMESPACE
