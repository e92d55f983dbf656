// SPDX-License-Identifier: Apache-2.0
// Simulated devices, adding as their units do, against R8 with the sums of those units: to 2e-3, where the exact R8 is
// further away than that. O is kept in FP32, since one flipped rounding of a BF16 O moves the consistent delta, and with
// a key bias dQ by more.
//
// What is left between the two is single roundings of P and dS that FP32 tips over: 5e-4 at most in these cases, 1e-6 in
// most. (With a key bias one element of dS, rounded the other way, can be 2e-3 of all of dQ: row 67 at 200 x 600, d 128.)
#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "conformance/judge.hpp"
#include "support/unit_reference.hpp"

using namespace octavo_tests;

namespace {

constexpr storage in_f32{.o_in_f32 = true};

/// Sums of the unit in the runs of tests, for as long as it lives.
struct unit_sums_of_simulators {
  unit_sums_of_simulators() { simulated_sums = octavo::accumulator::model; }
  ~unit_sums_of_simulators() { simulated_sums = octavo::accumulator::ideal; }
};

template <const matrix_unit& unit, class... Recipes>
octavo::backend_entry reference_of() {
  using backend = unit_reference<unit>;
  static const std::span<const octavo::engine> engines[] = {octavo::engines_of<backend, Recipes>()...};
  return octavo::host_entry<backend>(engines);
}

struct drawn_case {
  input_family inputs;
  test_case c;
};
/// One tile of queries and a ragged one, of every family; and several tiles of keys, of a group of two heads.
std::vector<drawn_case> cases() {
  using enum input_family;
  octavo::problem causal, group;
  causal.h_q = 2, causal.s_q = 129, causal.s_kv = 160;
  causal.mask.causal = octavo::causal_mask::bottom_right;
  group.h_q = 2, group.s_q = 200, group.s_kv = 333;
  std::vector<drawn_case> out;
  const auto add = [&](octavo::problem p, input_family inputs) {
    for (const std::int64_t d : {64, 128}) {
      p.d_qk = p.d_v = d;
      out.push_back({inputs, make_case(p, inputs, 20240601u + static_cast<unsigned>(p.s_kv))});
    }
  };
  for (const input_family inputs : {randn, outliers, key_bias_value_mode, token_spread}) add(causal, inputs);
  add(group, key_bias_value_mode);
  return out;
}

/// The largest distance of gradients from the exact R8.
double distance_from_exact(const octavo::engine& e, const test_case& c, const results& got) {
  const octavo::backend_entry* exact = find_backend(octavo::all_backends(), "reference");
  if (!exact || !exact->compiled) return infinite;
  const results r8 = run(*exact, *exact->find(e.recipe, e.delta, false), c, in_f32);
  return std::max({relative_error(got.dq, r8.dq), relative_error(got.dk, r8.dk), relative_error(got.dv, r8.dv)});
}

/// cut: whether the unit's sums are so short that the exact R8 has to be further away.
void check(const char* name, std::vector<const char*> recipes, const octavo::backend_entry& reference, bool cut) {
  const octavo::backend_entry* simulator = find_backend(octavo::all_backends(), name);
  if (!simulator || !simulator->compiled) {
    MESSAGE("skipped: ", name, " is not compiled");
    return;
  }
  const unit_sums_of_simulators as_the_unit;
  const std::vector<drawn_case> all = cases();
  double furthest = 0;
  std::size_t judged = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const char* recipe : recipes)
      for (const char* delta : {"matched", "consistent"}) {
        const auto& [inputs, c] = all[i];
        const octavo::engine& e = *simulator->find(recipe, delta, false);
        const results got = run(*simulator, e, c, in_f32);
        truth known(reference, c, in_f32);
        known.sums_as_the_unit = true;
        for (const std::string& complaint : judge::on(*simulator, e, c, inputs, got, known))
          FAIL_CHECK(recipe << ", " << delta << ", case " << i << ", d " << c.p.d_qk << ": " << complaint);
        ++judged;
        if (cut && i == 0) furthest = std::max(furthest, distance_from_exact(e, c, got));
      }
  CHECK(judged == 2 * recipes.size() * all.size());
  if (cut) CHECK(furthest > 2e-3);
}

}  // namespace

TEST_CASE("simulated Hopper agrees with R8 that sums as its unit does") {
  check("sim-cuda-hopper", {"tile", "token"}, reference_of<hopper_unit, octavo::recipe::tile, octavo::recipe::token>(),
        true);
}
TEST_CASE("simulated Blackwell agrees with R8 that sums as its unit does") {
  check("sim-cuda-blackwell", {"mx32"}, reference_of<blackwell_unit, octavo::recipe::mx32>(), false);
}

TEST_CASE("R8 of a unit tells runs of another length") {
  static constexpr matrix_unit longer{13, 13, 256, 128, true};
  const test_case c = cases().back().c;
  const auto of = [&](const octavo::backend_entry& reference) {
    return run(reference, *reference.find("tile", "matched", false), c, in_f32);
  };
  const results x = of(reference_of<hopper_unit, octavo::recipe::tile>());
  const results y = of(reference_of<longer, octavo::recipe::tile>());
  CHECK(relative_error(x.o, y.o) > 1e-5);
  CHECK(relative_error(x.dv, y.dv) > 1e-5);
}
