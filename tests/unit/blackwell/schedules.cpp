// SPDX-License-Identifier: Apache-2.0
// The Blackwell schedules under many orders of events: whatever order threads run in and whenever copies and products end,
// no operation touches what another still holds (the simulator throws), and every result has the same bits.
#include <octavo/backends/sim/blackwell.hpp>
#include <octavo/engines.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>

#include "conformance/judge.hpp"

using namespace octavo_tests;

namespace {

std::uint64_t seed_of_queues = 0;

/// sim-cuda-blackwell with such queues; null where it is not compiled.
const octavo::backend_entry* seeded_backend() {
  const octavo::backend_entry* known = find_backend(octavo::all_backends(), "sim-cuda-blackwell");
  if (known == nullptr || !known->compiled) return nullptr;
  static octavo::backend_entry seeded;
  seeded = *known;
  seeded.make_queue = []() -> void* {
    auto* queue = new octavo::backends::sim_cuda_blackwell::queue;
    queue->how.seed = seed_of_queues;
    return queue;
  };
  return &seeded;
}

bool same_bits(const floats& x, const floats& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
}

void check_seeds(const octavo::problem& p, const char* delta, std::uint64_t seeds) {
  const octavo::backend_entry* backend = seeded_backend();
  if (backend == nullptr) {
    MESSAGE("skipped: sim-cuda-blackwell is not compiled");
    return;
  }
  const test_case c = make_case(p, input_family::key_bias_value_mode, 7);
  const octavo::engine& e = *backend->find("mx32", delta, false);
  seed_of_queues = 0;
  const results first = run(*backend, e, c);
  REQUIRE_MESSAGE(first.ok(), first.status.message.c_str());
  for (seed_of_queues = 1; seed_of_queues <= seeds; ++seed_of_queues) {
    CAPTURE(seed_of_queues);
    const results other = run(*backend, e, c);
    REQUIRE_MESSAGE(other.ok(), other.status.message.c_str());
    for (floats results::* field : {&results::o, &results::lse, &results::m, &results::l, &results::dq, &results::dk,
                                    &results::dv, &results::row_sum, &results::l1})
      CHECK(same_bits(other.*field, first.*field));
  }
}

/// With the tensor cores' own sums, 25 fraction bits and the rest cut off.
void check_modelled(const octavo::problem& p) {
  const octavo::backend_entry* backend = seeded_backend();
  const octavo::backend_entry* reference = find_backend(octavo::all_backends(), "reference");
  if (backend == nullptr || reference == nullptr || !reference->compiled) {
    MESSAGE("skipped: sim-cuda-blackwell or the reference is not compiled");
    return;
  }
  const test_case c = make_case(p, input_family::key_bias_value_mode, 11);
  truth known(*reference, c, {});
  seed_of_queues = 0;
  for (const char* delta : {"stale", "matched", "consistent"}) {
    const octavo::engine& e = *backend->find("mx32", delta, false);
    const storage in_f32{.o_in_f32 = true};
    const results exact_sums = run(*backend, e, c, in_f32);
    const unit_sums_of_simulators as_the_tensor_cores;
    CHECK(!same_bits(run(*backend, e, c, in_f32).o, exact_sums.o));
    const results got = run(*backend, e, c);
    for (const std::string& complaint : judge::on(*backend, e, c, input_family::key_bias_value_mode, got, known))
      FAIL_CHECK(delta << ": " << complaint);
  }
}

constexpr auto bottom_right = octavo::causal_mask::bottom_right;

}  // namespace

TEST_CASE("the Blackwell schedules give the same bits in every order of events: d 64, three tiles, grouped heads") {
  check_seeds({.h_q = 2, .s_q = 300, .s_kv = 290, .mask = {bottom_right}}, "matched", 5);
}
TEST_CASE("the Blackwell schedules give the same bits in every order of events: d 128") {
  check_seeds({.s_q = 260, .s_kv = 500, .d_qk = 128, .d_v = 128}, "consistent", 4);
}
TEST_CASE("the Blackwell schedules give the same bits in every order of events: more tiles than stages") {
  check_seeds({.s_q = 130, .s_kv = 900, .d_qk = 128, .d_v = 128, .mask = {bottom_right, 700}}, "matched", 2);
  check_seeds({.s_q = 700, .s_kv = 100, .d_qk = 128, .d_v = 128}, "stale", 2);
  check_seeds({.s_q = 64, .s_kv = 900}, "matched", 2);  // d 64 has 6 stages in the forward, 4 elsewhere
  check_seeds({.s_q = 600, .s_kv = 64}, "consistent", 2);
}

TEST_CASE("the Blackwell schedules are within 2e-3 of R8 with sums as the tensor cores make them") {
  check_modelled({.h_q = 2, .s_q = 200, .s_kv = 300, .mask = {bottom_right}});
  check_modelled({.s_q = 150, .s_kv = 140, .d_qk = 128, .d_v = 128});
}
