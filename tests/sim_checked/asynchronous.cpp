// SPDX-License-Identifier: Apache-2.0
// What happens between an issue and the wait that observes it: whoever touches the destination of a copy, or writes its
// source or the operands of a product meanwhile is found, whatever the order of things in this run.
#include <octavo/backends/cuda/ptx/tensor_copy.hpp>

#include "sim_checked/faults.hpp"
#include "unit/sim/faults.hpp"

namespace {

using namespace sim_checked;
using sim_test::faulty::barriers;
using sim_test::faulty::shared_bytes;
using sim_test::faulty::tile_bytes;

constexpr int copied_ints = 64;

ptx::shared_barrier& full() { return *shared<ptx::shared_barrier>(barriers); }
ptx::shared_barrier& empty() { return *shared<ptx::shared_barrier>(barriers + 8); }

/// Thread 0 makes the barriers, for all. What is copied to has been written before.
void make_barriers(int arrivals_at_empty) {
  if (thread() == 0) {
    full().init(1);
    empty().init(arrivals_at_empty);
    ptx::fence_barriers();
  }
  if (thread() < copied_ints) shared<int>()[thread()] = 0;
  ptx::sync_block();
}
int issued_at = 0;  ///< the line
void issue(const void* from) {
  full().arrive_expecting(copied_ints * 4);
  issued_at = __LINE__ + 1;
  ptx::bulk_load(ptx::shared_memory(), from, copied_ints * 4, full());
}

template <class Function>
std::vector<std::string> faults(Function function, std::vector<sim::checks::range> buffers = {}) {
  return faults_of<32, 128, shared_bytes>(function, {}, buffers);
}

}  // namespace

TEST_CASE("checked: the destination of a copy is not touched before the copy is observed") {
  sim_test::image image(copied_ints * 4);
  int touched = 0;
  const auto copy = [&](bool waits, bool writes) {
    return faults([&, waits, writes] {
      make_barriers(1);
      if (thread() == 0) issue(image.data());
      if (waits) full().wait(0);
      if (thread() < copied_ints) {
        const int mine = thread();
        touched = __LINE__ + (writes ? 1 : 2);
        if (writes) shared<int>()[mine] = 1;
        if (!writes) shared<int>()[copied_ints + mine] = shared<int>()[mine];
      }
      if (!waits && thread() == 0) full().wait(0);
    });
  };
  CHECK(all_have(copy(false, true), touched, issued_at, "a copy of block 0 that the barrier at offset 8192 counts",
                 "a race"));
  CHECK(all_have(copy(false, false), touched, issued_at, "sim: planted: ", "a copy of block 0", "a race"));
  CHECK(all_empty(copy(true, false)));
  CHECK(all_empty(copy(true, true)));
}

TEST_CASE("checked: the source of a copy is not written before the copy is observed") {
  sim_test::image image(copied_ints * 4);
  const std::vector<sim::checks::range> buffers{{image.data(), copied_ints * 4}};
  int written = 0;
  const auto copy = [&](bool waits) {
    return faults(
        [&, waits] {
          make_barriers(1);
          if (thread() == 0) issue(image.data());
          if (waits) full().wait(0);
          written = __LINE__ + 1;
          if (thread() == 0) image.data()[5] = 1;
          if (!waits) full().wait(0);
        },
        buffers);
  };
  CHECK(all_have(copy(false), written, issued_at, "writes 1 bytes at offset 5 of global buffer 0", "a copy of block 0",
                 "reads"));
  CHECK(all_empty(copy(true)));
  const auto too_long = [&] {
    make_barriers(1);
    if (thread() == 0) issue(image.data());
    full().wait(0);
  };
  CHECK(all_have(faults(too_long, {{image.data(), copied_ints * 4 - 16}}), issued_at, "sim: planted: a copy of block 0",
                 "reads 256 bytes at offset 0 of global buffer", "out of bounds"));
}

TEST_CASE("checked: a box of a tensor reads what lies in the tensor, and fills all of its destination") {
  constexpr int rows = 3, pitch = 48, width = 40, box_rows = 8, bytes = (rows - 1) * pitch + width;
  sim_test::image image(rows * pitch);
  const std::vector<sim::checks::range> buffers{{image.data(), bytes}};  // nothing behind the last row's end
  ptx::tensor_map map;
  REQUIRE(ptx::encode(map, {image.data(), 2, {width, rows}, {pitch}, {pitch, box_rows}, ptx::swizzle::none}));
  int loaded = 0, read = 0;
  const auto copy = [&](int x, int y, bool waits) {
    return faults(
        [&, x, y, waits] {
          make_barriers(1);
          if (thread() == 0) full().arrive_expecting(box_rows * pitch);
          loaded = __LINE__ + 1;
          if (thread() == 0) ptx::tensor_load(ptx::shared_memory(), map, x, y, full());
          if (waits) full().wait(0);
          read = __LINE__ + 1;
          if (thread() == 70) shared<int>()[copied_ints] = shared<int>()[4 * pitch / 4];
          full().wait(0);
        },
        buffers);
  };
  CHECK(all_empty(copy(0, 0, true)));
  CHECK(all_empty(copy(-8, -2, true)));
  CHECK(all_empty(copy(24, 1, true)));
  // Row 4 of the box, which is outside of the tensor, is a part of the copy as well.
  CHECK(all_have(copy(0, 0, false), read, loaded, "sim: planted: ", "(warp 2, lane 6) of block 0", "a copy of block 0",
                 "a race"));
}

TEST_CASE("checked: a stage is loaded again when all its readers have said that they are done") {
  sim_test::image image(copied_ints * 4);
  int read = 0;
  const auto pipeline = [&](bool all_say_so) {
    return faults([&, all_say_so] {
      make_barriers(2);  // one arrival of each of two warps
      if (thread() >= 64 && thread() < 96) {
        for (int round = 0; round < 2; ++round) {
          empty().wait(round % 2 ^ 1);
          if (thread() == 64) issue(image.data());
        }
      } else if (thread() < 64) {
        for (int round = 0; round < 2; ++round) {
          full().wait(round % 2);
          read = __LINE__ + 1;
          shared<int>()[copied_ints + thread()] = shared<int>()[thread()];
          if (all_say_so) ptx::sync_warp();
          if (thread() % 32 == 0) empty().arrive();
        }
      }
    });
  };
  CHECK(all_empty(pipeline(true)));
  CHECK(all_have(pipeline(false), read, issued_at, "a copy of block 0", "writes 256 bytes at offset 0", "a race"));
}

TEST_CASE("checked: operands of a product are not written before the product is waited for") {
  using namespace sim_test::faulty;
  int issued = 0, written = 0;
  const auto product = [&](bool waits) {
    return faults([&, waits] {
      fill_tiles();
      float d[32];
      ptx::wgmma_fence();
      issued = __LINE__ + 1;
      ptx::wgmma(d, first_tile(), second_tile(), false);
      ptx::wgmma_commit();
      if (waits) ptx::wgmma_wait<0>();
      written = __LINE__ + 1;
      if (thread() == 77) ptx::shared_memory()[tile_bytes + 100] = 0;
      if (!waits) ptx::wgmma_wait<0>();
    });
  };
  CHECK(all_have(product(false), issued, written, "a product of warpgroup 0 of block 0", "a race"));
  // The threads that have waited know; of the others' waits they know nothing, but they read no operands.
  CHECK(all_empty(product(true)));
}

TEST_CASE("checked: every thread that issues a product has seen its operands written, and all are written") {
  using namespace sim_test::faulty;
  int issued = 0;
  const auto product = [&](bool last_warp_waits, int bytes) {
    return faults([&, last_warp_waits, bytes] {
      make_barriers(1);
      if (thread() == 0) {
        full().arrive_expecting(bytes);
        ptx::bulk_load(ptx::shared_memory(), tile().data(), bytes, full());
      }
      ptx::sync_block();  // behind the issue, which says nothing of the copy's end
      if (last_warp_waits || thread() < 96) full().wait(0);
      float d[32];
      ptx::wgmma_fence();
      issued = __LINE__ + 1;
      ptx::wgmma(d, first_tile(), second_tile(), false);
      end_products();
    });
  };
  CHECK(all_empty(product(true, 2 * tile_bytes)));
  CHECK(all_have(product(false, 2 * tile_bytes), issued, "multiplies what a copy fills", "that it has not waited for"));
  CHECK(all_have(product(true, tile_bytes), issued, "a product of warpgroup 0", "which nothing has written"));
}
