// SPDX-License-Identifier: Apache-2.0
// tcgen05 in a kernel of roles as the schedules have them: a warp loads, a warp multiplies, a group of four warps reads
// S, makes P of it in tensor memory, and reads O at the end.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_test;

constexpr int rows = 128, d = 64, tiles = 5, stages = 2, scale_bytes = 512;
constexpr int q_bytes = rows * d, kv_bytes = 2 * rows * d;  // a stage: K [128, d], and V [128 keys, d] for each d

/// Where barriers stand.
constexpr int q_at = 0, kv_at = q_at + q_bytes, scales_at = kv_at + stages * kv_bytes,
              frame_at = scales_at + scale_bytes;
constexpr int barriers_at = frame_at + 8, shared_bytes = barriers_at + 8 * (1 + 2 * stages + 4);

enum which { q_full, kv_full, kv_empty = kv_full + stages, s_full = kv_empty + stages, p_full, o_full, s_free };

struct plan {
  bool wait_empty = true;  ///< the loader waits until a stage is free
  bool fence_p = true;     ///< between the stores of P and the arrival that tells of them
  bool wait_p = true;      ///< for those stores
  bool keep_order = true;  ///< of phases: the multiplier waits for P of this tile and not of the one before
};

/// Lines of what the faults are about.
struct lines {
  int expects, loads, multiplies, stores;
};
lines at{};

/// O = sum over tiles of e4m3(S / 64) V, S = Q K^T.
struct attention {
  static constexpr int threads = 192, shared_bytes = ::shared_bytes;
  plan how;
  const image &q, &kv;
  float* o;
  std::int64_t blocks() const { return 1; }

  static ptx::shared_barrier& barrier(int i) { return barrier_at(barriers_at + 8 * i); }
  static ptx::tensor_address tensor() {
    return *reinterpret_cast<const ptx::tensor_address*>(ptx::shared_memory() + frame_at);
  }
  static constexpr int s_column = 0, o_column = 128, p_column = 192, scale_column = 224;

  void load() const {
    barrier(q_full).arrive_expecting(q_bytes);
    ptx::bulk_load(ptx::shared_memory() + q_at, q.data(), q_bytes, barrier(q_full));
    for (int i = 0; i < tiles; ++i) {
      const int s = i % stages;
      if (how.wait_empty) barrier(kv_empty + s).wait(i / stages % 2 ^ 1);
      char* const stage = ptx::shared_memory() + kv_at + s * kv_bytes;
      at.expects = __LINE__ + 1;
      barrier(kv_full + s).arrive_expecting(kv_bytes);
      at.loads = __LINE__ + 1;
      ptx::bulk_load(stage, kv.data() + i * kv_bytes, kv_bytes, barrier(kv_full + s));
    }
  }

  void multiply() const {
    const char* shared = ptx::shared_memory();
    const ptx::tensor_address t = tensor(), ones = t.column(scale_column);
    constexpr auto of_s = ptx::mma_instruction::scaled<e4m3, e4m3>(rows);
    constexpr auto of_o = ptx::mma_instruction::scaled<e4m3, e4m3>(d, ptx::major::k, ptx::major::r);
    ptx::tcgen05_copy_scales(ones, ptx::shared_operand::scale_tile(shared + scales_at));
    barrier(q_full).wait(0);
    for (int i = 0; i < tiles; ++i) {
      const int s = i % stages;
      const char* k = shared + kv_at + s * kv_bytes;
      barrier(kv_full + s).wait(i / stages % 2);
      barrier(s_free).wait(i % 2 ^ 1);
      ptx::tcgen05_fence_after();
      for (int c = 0; c < d; c += 32)
        ptx::tcgen05_mma_scaled(
            t.column(s_column), ptx::shared_operand::k_major(shared + q_at, ptx::swizzle::bytes_64).advanced(c),
            ptx::shared_operand::k_major(k, ptx::swizzle::bytes_64).advanced(c), of_s, ones, ones, c > 0);
      ptx::tcgen05_commit(barrier(s_full));
      barrier(p_full).wait(how.keep_order ? i % 2 : i % 2 ^ 1);
      ptx::tcgen05_fence_after();
      for (int c = 0; c < rows; c += 32) {
        const auto v = ptx::shared_operand::r_major(k + rows * d, ptx::swizzle::bytes_64, rows).advanced(c * d);
        const ptx::tensor_address o_sum = t.column(o_column), p = t.column(p_column + c / 4);
        at.multiplies = __LINE__ + 1;
        ptx::tcgen05_mma_scaled(o_sum, p, v, of_o, ones, ones, i > 0 || c > 0);
      }
      ptx::tcgen05_commit(barrier(kv_empty + s));
    }
    ptx::tcgen05_commit(barrier(o_full));
  }

  void soften() const {
    const int warp = ptx::thread_index() / 32;
    const ptx::tensor_address t = tensor().of_warp(warp);
    for (int i = 0; i < tiles; ++i) {
      barrier(s_full).wait(i % 2);
      ptx::tcgen05_fence_after();
      float s[rows];
      ptx::tcgen05_load(s, t.column(s_column));
      ptx::tcgen05_wait_loads(s);
      std::uint32_t p[rows / 4];
      for (int c = 0; c < rows / 4; ++c)
        p[c] = ptx::pack<e4m3>(s[4 * c] / 64, s[4 * c + 1] / 64, s[4 * c + 2] / 64, s[4 * c + 3] / 64);
      at.stores = __LINE__ + 1;
      ptx::tcgen05_store(t.column(p_column), p);
      if (how.wait_p) ptx::tcgen05_wait_stores();
      if (how.fence_p) ptx::tcgen05_fence_before();
      barrier(p_full).arrive();
      barrier(s_free).arrive();
    }
    barrier(o_full).wait(0);
    ptx::tcgen05_fence_after();
    float x[d];
    ptx::tcgen05_load(x, t.column(o_column));
    ptx::tcgen05_wait_loads(x);
    for (int c = 0; c < d; ++c) o[ptx::thread_index() * d + c] = x[c];
  }

  void operator()() const {
    const int warp = ptx::thread_index() / 32;
    if (warp == 4) ptx::tcgen05_alloc(reinterpret_cast<ptx::tensor_address*>(ptx::shared_memory() + frame_at), 256);
    if (ptx::thread_index() == 0) {
      for (int i = 0; i <= s_free; ++i) barrier(i).init(i == p_full || i == s_free ? 128 : 1);
      ptx::fence_barriers();
    }
    if (ptx::thread_index() < scale_bytes / 4)  // scales of 1, by plain writes
      reinterpret_cast<std::uint32_t*>(ptx::shared_memory() + scales_at)[ptx::thread_index()] = 0x7f7f7f7f;
    ptx::fence_async();
    tensor_frame::sync();
    if (ptx::thread_index() == 160) load();
    if (ptx::thread_index() == 128) multiply();
    if (warp < 4) soften();
    tensor_frame::sync();
    if (warp == 4) ptx::tcgen05_dealloc(tensor(), 256);
  }
};

struct inputs {
  code_matrix q = even_codes(rows, d, 1), k = even_codes(tiles * rows, d, 2), v = even_codes(tiles * rows, d, 3);
  image of_q = placed(q, {64, false}), of_kv = image(tiles * kv_bytes);
  inputs() {
    for (int i = 0; i < tiles; ++i)
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < d; ++c) {
          std::uint8_t* stage = of_kv.data() + i * kv_bytes;
          stage[place({64, false}, rows, d, r, c)] = k.code(i * rows + r, c);
          stage[rows * d + place({64, true}, d, rows, c, r)] = v.code(i * rows + r, c);
        }
  }
};

std::string fault_of_plan(const plan& how, std::uint64_t seed) {
  static const inputs in;
  std::vector<float> o(rows * d);
  try {
    sim::launch(attention{how, in.of_q, in.of_kv, o.data()}, {.seed = seed});
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("sim: tcgen05: a forward of three roles under many seeds") {
  const inputs in;
  std::vector<float> expected(rows * d, 0.0f);
  for (int r = 0; r < rows; ++r)
    for (int key = 0; key < tiles * rows; ++key) {
      double s = 0;
      for (int c = 0; c < d; ++c) s += static_cast<double>(in.q(r, c)) * in.k(key, c);
      const float p = e4m3::round(static_cast<float>(s) / 64);
      for (int c = 0; c < d; ++c) expected[static_cast<std::size_t>(r * d + c)] += p * in.v(key, c);
    }
  std::vector<float> first;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    std::vector<float> o(rows * d);
    const sim::report done = sim::launch(attention{{}, in.of_q, in.of_kv, o.data()}, {.seed = seed});
    CHECK(done.products == tiles * (d / 32 + rows / 32));
    if (first.empty()) first = o;
    CHECK(o == first);
    float worst = 0;
    for (std::size_t i = 0; i < o.size(); ++i) worst = std::max(worst, std::fabs(o[i] - expected[i]));
    CHECK(worst < 1e-3f);
  }
}

TEST_CASE("sim: tcgen05: what can go wrong between three roles is found, and where") {
  const auto named = [](const char* who, const int& line) {
    return std::string("sim: attention: ") + who + " of block 0 (tensor_pipeline.cpp:" + std::to_string(line) + ") ";
  };
  const auto other = [](const char* what, const int& line) {
    return std::string(what) + " (tensor_pipeline.cpp:" + std::to_string(line) + ")";
  };
  constexpr const char *loader = "thread 160 (warp 5, lane 0)", *multiplier = "thread 128 (warp 4, lane 0)";
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    CHECK(fault_of_plan({}, seed) == "");
    // The seed decides what comes first: bytes expected beyond the arrivals, or a copy over one under way.
    const std::string not_empty = fault_of_plan({.wait_empty = false}, seed);
    const bool expected = not_empty.find("arrives at the barrier") != std::string::npos;
    CHECK(has(not_empty, named(loader, expected ? at.expects : at.loads)));
    CHECK(has(not_empty, expected ? "16384 bytes are outstanding" : other("which a copy fills", at.loads)));

    for (const plan& how : {plan{.wait_p = false}, plan{.fence_p = false}}) {
      const std::string fault = fault_of_plan(how, seed);
      CHECK(has(fault, named(multiplier, at.multiplies) + "reads A from tensor memory"));
      CHECK(has(fault, other("of which a store", at.stores)));
      if (how.wait_p) CHECK(has(fault, "nor do a tcgen05_fence_before and a barrier lead here"));
    }
    const std::string wrong_phase = fault_of_plan({.keep_order = false}, seed);
    CHECK(has(wrong_phase, named(multiplier, at.multiplies) + "reads A from tensor memory"));
    CHECK(has(wrong_phase, "of which nothing has written lanes 0 to 31, column "));
  }
}
