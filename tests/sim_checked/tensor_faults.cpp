// SPDX-License-Identifier: Apache-2.0
// What goes wrong most easily between the roles of a tcgen05 kernel, planted in the second of two blocks: a missing wait,
// a wrong phase, a missing proxy fence, tensor memory that is not freed, columns that nobody wrote. Each is found with
// every seed, by kernel, block, warp and lane, and with the lines of the access and of what it should have followed.
#include "sim_checked/faults.hpp"
#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_checked;
using sim_test::tensor_frame;

constexpr int tile_bytes = 128 * 32, scales_at = 2 * tile_bytes, frame_at = 16 * 1024, shared_bytes = 17 * 1024;
constexpr tensor_frame frame{frame_at};
constexpr auto plain = ptx::mma_instruction::plain<octavo::e4m3, octavo::e4m3>(128);
constexpr auto scaled = ptx::mma_instruction::scaled<octavo::e4m3, octavo::e4m3>(128);

bool faulty_block() { return ptx::block_index() == 1; }
int warp() { return thread() / 32; }
ptx::shared_operand operand(int i) {
  return ptx::shared_operand::k_major(ptx::shared_memory() + i * tile_bytes, ptx::swizzle::bytes_32);
}

/// Function within the frame: tensor memory, barriers, two operands of ones.
template <class Function>
std::vector<std::string> faults(Function function) {
  static const sim_test::image ones = [] {
    sim_test::image i(2 * tile_bytes);
    for (int b = 0; b < i.size(); ++b) i.data()[b] = sim_test::code(1);
    return i;
  }();
  return faults_of<32, 128, shared_bytes>(
      [function] {
        frame.begin();
        frame.fill(ones.data(), ones.size());
        ptx::sync_block();
        function();
        frame.end();
      },
      {.blocks = 2});
}

/// Who a fault says to be at fault: a lane of a warp (-1: whichever comes first with a seed) in the second block, at a
/// line, which is known when the kernel has run.
struct culprit {
  int warp, lane;
  const int& line;
};
bool names(const std::string& fault, const culprit& c) {
  const std::string lane = std::string("(warp ") + std::to_string(c.warp) + ", lane ";
  const std::string place = ") of block 1 (tensor_faults.cpp:" + std::to_string(c.line) + ") ";
  const std::size_t at = fault.find(c.lane < 0 ? lane : lane + std::to_string(c.lane) + place);
  return fault.rfind("sim: planted: thread ", 0) == 0 && has(fault, place) && at != std::string::npos && at < 40;
}
template <class... Parts>
bool all_name(const std::vector<std::string>& faults, const culprit& who, const Parts&... parts) {
  for (const std::string& f : faults)
    if (!(names(f, who) && (sim_checked::names(f, parts) && ...))) return false;
  return true;
}

}  // namespace

TEST_CASE("checked: tcgen05: a missing wait and a wrong phase are found") {
  int issued = 0, waited = 0, read = 0;
  const auto product = [&](bool waits, int parity) {
    return faults([&, waits, parity] {
      issued = __LINE__ + 1;
      if (thread() == 0) ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, false);
      if (thread() == 0) ptx::tcgen05_commit(frame.barrier(0));
      ptx::sync_block();
      if (warp() == 2) {
        const bool faulty = faulty_block();
        waited = __LINE__ + 1;
        if (waits || !faulty) frame.barrier(0).wait(faulty ? parity : 0);
        ptx::tcgen05_fence_after();
        float d[8];
        read = __LINE__ + 1;
        ptx::tcgen05_load(d, frame.address().of_warp(2));
        ptx::tcgen05_wait_loads(d);
      }
      frame.barrier(0).wait(0);
    });
  };
  CHECK(all_empty(product(true, 0)));
  const auto read_early = [&](const std::string& fault) {
    return all_name({fault}, {2, -1, read}, issued, "reads registers from tensor memory (lanes 64 to 95, columns ",
                    "of which a product (tensor_faults.cpp:", "that has not been waited for");
  };
  for (const std::string& fault : product(false, 0)) CHECK(read_early(fault));
  // The phase before lets the warp through while the product runs; when it has ended, the one behind never comes.
  int early = 0, late = 0;
  for (const std::string& fault : product(true, 1)) {
    const bool hangs = fault.rfind("sim: planted: deadlock", 0) == 0;
    ++(hangs ? late : early);
    if (hangs)
      CHECK(all_have({fault}, waited,
                     "block 1, threads 64 to 95: wait for the phase of parity 1 of the barrier at offset 16392: 0 of 1 "
                     "arrivals have come, 0 bytes are outstanding (tensor_faults.cpp:"));
    else
      CHECK(read_early(fault));
  }
  CHECK(early > 0);
  CHECK(late > 0);
}

TEST_CASE("checked: tcgen05: a missing proxy fence is found at the product, and names the write") {
  int written = 0, issued = 0;
  const auto product = [&](bool fences) {
    return faults([&, fences] {
      written = __LINE__ + 1;
      if (thread() == 77) ptx::shared_memory()[tile_bytes + 100] = 0x40;
      if (fences || !faulty_block()) ptx::fence_async();
      ptx::sync_block();
      issued = __LINE__ + 1;
      if (thread() == 96) ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, false);
      if (thread() == 96) ptx::tcgen05_commit(frame.barrier(0));
      frame.barrier(0).wait(0);
    });
  };
  CHECK(all_empty(product(true)));
  CHECK(all_name(
      product(false), {3, 0, issued}, written, "multiplies B, which was written at offset 4192",
      "by thread 77 (warp 2, lane 13) of block 1 (tensor_faults.cpp:", "no thread has come to a fence_async since"));

  const auto scales = [&](bool fences) {
    return faults([&, fences] {
      written = __LINE__ + 1;
      if (thread() >= 64) shared<std::uint64_t>(scales_at)[thread() - 64] = 0x7f7f7f7f7f7f7f7f;
      if (fences || !faulty_block()) ptx::fence_async();
      ptx::sync_block();
      const auto tile = ptx::shared_operand::scale_tile(ptx::shared_memory() + scales_at);
      issued = __LINE__ + 1;
      if (thread() == 96) ptx::tcgen05_copy_scales(frame.address(), tile);
      if (thread() == 96) ptx::tcgen05_commit(frame.barrier(0));
      frame.barrier(0).wait(0);
    });
  };
  CHECK(all_empty(scales(true)));
  CHECK(all_name(scales(false), {3, 0, issued}, written, "by thread 64 (warp 2, lane 0) of block 1 (",
                 "no thread has come to a fence_async since"));
}

TEST_CASE("checked: tcgen05: tensor memory that is not freed is found at the end of the block") {
  int taken = 0;
  const auto take = [&](bool frees) {
    return faults_of<32, 64, 64>(
        [&, frees] {
          auto* first = shared<ptx::tensor_address>();
          taken = __LINE__ + 1;
          if (warp() == 1) ptx::tcgen05_alloc(first, 64);
          ptx::sync_block();
          if (warp() == 1 && (frees || !faulty_block())) ptx::tcgen05_dealloc(*first, 64);
        },
        {.blocks = 2});
  };
  CHECK(all_empty(take(true)));
  CHECK(all_have(take(false), taken,
                 "sim: planted: block 1 ended with 64 columns of tensor memory that its warp 1 took",
                 "and has not freed (tensor_faults.cpp:"));
}

TEST_CASE("checked: tcgen05: columns that nobody wrote are found by loads and by products") {
  int read = 0, issued = 0;
  const auto load = [&](int first) {
    return faults([&, first] {
      float x[8] = {}, y[8];
      const ptx::tensor_address mine = frame.address().of_warp(warp());
      ptx::tcgen05_store(mine, x);
      ptx::tcgen05_wait_stores();
      read = __LINE__ + 1;
      if (warp() == 1) ptx::tcgen05_load(y, mine.column(faulty_block() ? first : 0));
      if (warp() == 1) ptx::tcgen05_wait_loads(y);
    });
  };
  CHECK(all_empty(load(0)));
  CHECK(all_name(load(4), {1, -1, read}, "reads registers from tensor memory (lanes 32 to 63, columns ",
                 "of which nothing has written lanes 32 to 63, column "));

  const auto product = [&](bool brings_scales) {
    return faults([&, brings_scales] {
      if (warp() == 0) shared<std::uint32_t>(scales_at)[thread()] = 0x7f7f7f7f;
      for (int i = 1; i < 4 && warp() == 0; ++i) shared<std::uint32_t>(scales_at)[32 * i + thread()] = 0x7f7f7f7f;
      ptx::fence_async();
      ptx::sync_block();
      const ptx::tensor_address t = frame.address(), of_a = t.column(128), of_b = t.column(132);
      if (thread() == 33) {
        const auto tile = ptx::shared_operand::scale_tile(ptx::shared_memory() + scales_at);
        ptx::tcgen05_copy_scales(of_a, tile);
        if (brings_scales || !faulty_block()) ptx::tcgen05_copy_scales(of_b, tile);
        issued = __LINE__ + 1;
        ptx::tcgen05_mma_scaled(t, operand(0), operand(1), scaled, of_a, of_b, false);
        ptx::tcgen05_commit(frame.barrier(0));
      }
      frame.barrier(0).wait(0);
    });
  };
  CHECK(all_empty(product(true)));
  CHECK(all_name(product(false), {1, 1, issued}, "reads scales of B from tensor memory (lanes 0 to 127, columns ",
                 "of which nothing has written lanes 0 to 31, column "));
}
