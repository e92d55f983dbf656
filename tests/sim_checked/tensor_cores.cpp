// SPDX-License-Identifier: Apache-2.0
// Plain reads and writes of shared memory beside tcgen05: from the issue of a product to what tells of its end, its
// operands are not written, in whatever order things happen in this run.
#include "sim_checked/faults.hpp"
#include "unit/sim/tensor.hpp"

namespace {

using namespace sim_checked;
using sim_test::tensor_frame;

constexpr int tile_bytes = 128 * 32, frame_at = 16 * 1024, shared_bytes = 17 * 1024;
constexpr tensor_frame frame{frame_at};

template <class Function>
std::vector<std::string> faults(Function function) {
  return faults_of<32, 128, shared_bytes>(function);
}

const sim_test::image& ones() {
  static const sim_test::image filled = [] {
    sim_test::image i(2 * tile_bytes);
    for (int b = 0; b < i.size(); ++b) i.data()[b] = sim_test::code(1);
    return i;
  }();
  return filled;
}
void multiply(int& issued) {
  const auto operand = [](int i) {
    return ptx::shared_operand::k_major(ptx::shared_memory() + i * tile_bytes, ptx::swizzle::bytes_32);
  };
  constexpr auto plain = ptx::mma_instruction::plain<octavo::e4m3, octavo::e4m3>(128);
  issued = __LINE__ + 1;
  ptx::tcgen05_mma(frame.address(), operand(0), operand(1), plain, false);
  ptx::tcgen05_commit(frame.barrier(0));
}

}  // namespace

TEST_CASE("checked: operands of a tcgen05 product are not written before its commit is observed") {
  int issued = 0, written = 0;
  const auto product = [&](bool waits) {
    return faults([&, waits] {
      frame.begin();
      frame.fill(ones().data(), ones().size());
      ptx::sync_block();
      if (thread() == 0) multiply(issued);
      if (waits) frame.barrier(0).wait(0);
      written = __LINE__ + 1;
      if (thread() == 77) ptx::shared_memory()[tile_bytes + 100] = 0x38;  // what stands there anyway
      frame.barrier(0).wait(0);
      frame.end();
    });
  };
  CHECK(all_empty(product(true)));
  CHECK(all_have(product(false), written, issued, "thread 77 (warp 2, lane 13) of block 0",
                 "an operation of the tensor cores, issued by thread 0", "a race"));
}

TEST_CASE("checked: operands of a tcgen05 product are written before, and what wrote them is ordered before") {
  int issued = 0, written = 0;
  const auto product = [&](bool fills, bool ordered) {
    return faults([&, fills, ordered] {
      frame.begin();
      if (fills) frame.fill(ones().data(), ones().size());
      ptx::sync_block();
      written = __LINE__ + 1;
      if (thread() == 77) ptx::shared_memory()[tile_bytes + 77] = 0x38;
      ptx::fence_async();
      if (ordered) ptx::sync_block();
      if (thread() == 0) multiply(issued);
      frame.barrier(0).wait(0);
      frame.end();
    });
  };
  CHECK(all_empty(product(true, true)));
  CHECK(all_have(product(true, false), written, issued, "thread 77 (warp 2, lane 13) of block 0",
                 "an operation of the tensor cores, issued by thread 0", "a race"));
  CHECK(all_have(product(false, true), issued, "which nothing has written"));
}

TEST_CASE("checked: the address that tcgen05_alloc writes is read behind a barrier") {
  int looked = 0;
  const auto read = [&](bool behind) {
    return faults([&, behind] {
      if (thread() < 32)
        ptx::tcgen05_alloc(reinterpret_cast<ptx::tensor_address*>(ptx::shared_memory() + frame_at), 32);
      if (behind) ptx::sync_block();
      looked = __LINE__ + 1;
      if (thread() == 64 && shared<ptx::tensor_address>(frame_at)->bits == 7) return;  // which it never is
      ptx::sync_block();
      if (thread() < 32) ptx::tcgen05_dealloc(frame.address(), 32);
    });
  };
  CHECK(all_empty(read(true)));
  // A race, or read before it was written.
  CHECK(all_have(read(false), "sim: planted: ", looked, "thread 64 (warp 2, lane 0) of block 0", "shared memory"));
}

TEST_CASE("checked: a stage may be loaded again by who observes the commit of the product that read it") {
  int issued = 0;
  const auto pipeline = [&](bool waits) {
    return faults([&, waits] {
      frame.begin();
      frame.fill(ones().data(), ones().size());
      ptx::sync_block();
      if (thread() == 0) multiply(issued);
      ptx::sync_block();  // behind the issue, which says nothing of the end
      if (thread() == 96) {
        if (waits) frame.barrier(0).wait(0);
        frame.barrier(1).arrive_expecting(tile_bytes);
        ptx::bulk_load(ptx::shared_memory(), ones().data(), tile_bytes, frame.barrier(1));
      }
      frame.barrier(0).wait(0);
      frame.barrier(1).wait(1);
      frame.end();
    });
  };
  CHECK(all_empty(pipeline(true)));
  CHECK(all_have(pipeline(false), issued, "copies to offset 0, which a product or a copy may still read"));
}
