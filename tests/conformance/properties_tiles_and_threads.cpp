// SPDX-License-Identifier: Apache-2.0
// The integer row maximum takes the tile size out of the result, and a fixed order of sums takes the threads and the
// run out of it. Tiles of other sizes are the CPU backend's own operations: a class with two other numbers.
#include <octavo/backend/entry.hpp>
#include <octavo/backends/cpu/backend.hpp>

#include "support/inputs.hpp"
#include "support/metrics.hpp"
#include "support/slices.hpp"
#include "support/sweep.hpp"

using namespace octavo_tests;
using octavo::backends::cpu;

namespace {

template <int Q, int Kv>
struct cpu_with_tiles : cpu {
  static constexpr int tile_q = Q, tile_kv = Kv;
  static constexpr const char* name() { return "cpu, other tiles"; }
};
static_assert(octavo::require_backend<cpu_with_tiles<128, 32>>::value);
static_assert(octavo::require_backend<cpu_with_tiles<64, 64>>::value);

/// The backend with its threads fixed: a queue of the entry is made with the default, all of the machine's.
template <int Threads>
struct cpu_with_threads : cpu {
  struct queue : cpu::queue {
    queue() { threads = Threads; }
  };
};

template <class Backend, class Recipe>
results run_on(const test_case& c, const storage& how = {}) {
  static const octavo::backend_entry entry = octavo::host_entry<Backend>({});
  static const octavo::engine engine = octavo::engine_of<octavo::config<Backend, Recipe>>();
  return candidate{entry, engine}(c, how);
}

bool identical(const results& x, const results& y) {
  for (const auto field : {&results::o, &results::lse, &results::m, &results::l, &results::dq, &results::dk,
                           &results::dv, &results::delta, &results::row_sum, &results::l1, &results::dsink})
    if (!octavo_tests::identical(x.*field, y.*field)) return false;
  return true;
}

/// Grouped heads and a causal mask: several query heads add to one dK, several key tiles to one dQ.
octavo::problem crowded() {
  return {.b = 2,
          .h_q = 4,
          .h_kv = 1,
          .s_q = 200,
          .s_kv = 290,
          .d_qk = 64,
          .d_v = 64,
          .mask = {octavo::causal_mask::bottom_right},
          .sink = true,
          .deterministic = true};
}

}  // namespace

// P is the same up to underflow, which a lower running maximum spares; on flat rows nothing underflows. dS takes its
// scale per tile: underflow again.
TEST_CASE_TEMPLATE("no result has the tile size in it", Recipe, octavo::recipe::token, octavo::recipe::mx32) {
  test_case c = make_case(crowded(), input_family::randn, 41);
  const storage exact_o{.o_in_f32 = true};
  double allowed = 2e-4;
  SUBCASE("steep rows") {}
  SUBCASE("flat rows") {
    multiply(c.q, 0.25f);
    allowed = 1e-6;
  }
  const results whole = run_on<cpu, Recipe>(c, exact_o);
  for (const results& r :
       {run_on<cpu_with_tiles<128, 32>, Recipe>(c, exact_o), run_on<cpu_with_tiles<64, 64>, Recipe>(c, exact_o)}) {
    CHECK(octavo_tests::identical(r.m, whole.m));
    CHECK(relative_error(r.o, whole.o) < allowed);
    CHECK(largest_difference(r.lse, whole.lse) < allowed);
    CHECK(relative_error(r.dq, whole.dq) < 2e-4);
    CHECK(relative_error(r.dk, whole.dk) < 2e-4);
    CHECK(relative_error(r.dv, whole.dv) < 2e-4);
    CHECK(relative_error(r.dsink, whole.dsink) < 2e-4);
  }
}

TEST_CASE("the number of threads changes no bit") {
  const test_case c = make_case(crowded(), input_family::key_bias_value_mode, 42);
  const results one = run_on<cpu_with_threads<1>, octavo::recipe::token>(c);
  CHECK(identical(run_on<cpu_with_threads<2>, octavo::recipe::token>(c), one));
  CHECK(identical(run_on<cpu_with_threads<3>, octavo::recipe::token>(c), one));
}

TEST_CASE("deterministic mode: run after run, the same bits") {
  const test_case c = make_case(crowded(), input_family::key_bias_value_mode, 43);
  for_each_engine(c.p, {.recipes = {"token", "tile"}, .deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    const results first = on(c);
    int different = 0;
    const int runs = on.is_simulated() ? 2 : 20;  // their seeds are varied elsewhere
    for (int repeat = 1; repeat < runs; ++repeat) different += !identical(on(c), first);
    CHECK(different == 0);
  });
}

// Nothing in the workspace needs to be initialised or kept between calls. The harness fills it with one NaN pattern;
// here it holds what another problem left behind.
TEST_CASE("a used workspace is as good as a fresh one") {
  const test_case c = make_case(crowded(), input_family::randn, 44);
  for_each_engine(c.p, {.deltas = {"matched", "consistent"}}, [&](const candidate& on) {
    const session queue(on.backend);
    const auto size = static_cast<std::int64_t>(on.engine.workspace_size(c.p, octavo::pass::all));
    std::vector<std::uint8_t> garbage(static_cast<std::size_t>(size));
    for (std::size_t i = 0; i < garbage.size(); ++i) garbage[i] = static_cast<std::uint8_t>(i * 37 + i / 1001);
    const array_memory<std::uint8_t> shared(queue, garbage);
    const octavo::workspace scratch{shared.data(), static_cast<std::size_t>(size)};
    const results fresh = on(c);

    arena memory(queue);
    const octavo::problem& p = c.p;
    results r;
    octavo::forward_inputs in;
    in.q = memory.put(c.q, p.element, c.q_side(p.d_qk)), in.k = memory.put(c.k, p.element, c.kv_side(p.d_qk));
    in.v = memory.put(c.v, p.element, c.kv_side(p.d_v)), in.sink = memory.put(c.sink);
    octavo::forward_outputs out;
    out.o = memory.take(r.o, "O", p.element, c.q_side(p.d_v)), out.lse = memory.take(r.lse, "LSE", c.statistics());
    out.m = memory.take(r.m, "M", c.statistics()), out.l = memory.take(r.l, "l", c.statistics());
    octavo::backward_inputs back;
    back.q = in.q, back.k = in.k, back.v = in.v, back.sink = in.sink, back.o = out.o, back.m = out.m, back.l = out.l;
    back.dout = memory.put(c.dout, p.element, c.q_side(p.d_v));
    octavo::backward_outputs grad;
    grad.dq = memory.take(r.dq, "dQ", octavo::dtype::f32, c.q_side(p.d_qk));
    grad.dk = memory.take(r.dk, "dK", octavo::dtype::f32, c.kv_side(p.d_qk));
    grad.dv = memory.take(r.dv, "dV", octavo::dtype::f32, c.kv_side(p.d_v));
    grad.dsink = memory.take(r.dsink, "dsink", p.h_q);
    grad.row_sum = memory.take(r.row_sum, "the row sums", c.statistics());
    for (int call = 0; call < 2; ++call) {
      session::require(on.engine.forward(queue.queue(), p, in, out, scratch));
      session::require(on.engine.backward(queue.queue(), p, back, grad, scratch));
    }
    queue.synchronise();
    CHECK(memory.collect().empty());
    for (const auto field :
         {&results::o, &results::lse, &results::dq, &results::dk, &results::dv, &results::dsink, &results::row_sum})
      CHECK(octavo_tests::identical(r.*field, fresh.*field));
  });
}
