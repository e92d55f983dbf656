// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same on every platform: the standard fixes the engine's bits, but not its distributions.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace train_lm {

/// What a stream of numbers is for. Initialisation and batches draw from streams of their own, so that a change of the
/// model does not change the batches.
enum class stream : std::uint32_t { initialisation = 1, batches = 2, self_check = 3 };

class random_source {
 public:
  random_source(std::uint32_t seed, stream purpose) {
    std::seed_seq sequence{seed, static_cast<std::uint32_t>(purpose)};
    engine_.seed(sequence);
  }

  /// In [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  /// In [0, n).
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }

  /// Standard normal (Box and Muller; the second number of the pair is not kept).
  float normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return static_cast<float>(radius * std::cos(2.0 * std::numbers::pi * uniform()));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace train_lm
