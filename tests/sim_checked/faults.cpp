// SPDX-License-Identifier: Apache-2.0
// The checker finds planted races, reads of what was never written, accesses out of bounds and vectors that are not
// aligned, and names both lines; it is silent about the mended kernels.
#include "sim_checked/faults.hpp"

#include <atomic>

namespace {

using namespace sim_checked;

/// A kernel that writes, comes to `between`, and reads what another thread has written.
template <int lanes, int apart, class Between>
auto exchange(Between between, int& written, int& read) {
  return [=, &written, &read] {
    written = __LINE__ + 1;
    shared<int>()[thread()] = thread();
    between();
    read = __LINE__ + 1;
    shared<int>()[128 + thread()] = shared<int>()[thread() ^ apart];
  };
}

/// 32 KB of shared memory are written first, so that what is found is not a read of what was never written.
template <class Rest>
auto after_clearing(Rest rest) {
  return [=] {
    for (int i = thread(); i < 256; i += 64) shared<int>()[i] = 0;
    ptx::sync_block();
    rest();
  };
}

}  // namespace

TEST_CASE("checked: a race between warps, and the barrier that mends it") {
  int written = 0, read = 0;
  const auto race = after_clearing(exchange<32, 32>([] { ptx::sync_warp(); }, written, read));
  CHECK(all_have(faults_of(race), "planted: thread ", "of block 0 (faults.cpp:", written, read,
                 ": a race, nothing orders the two", "warp ", "lane "));
  CHECK(all_empty(faults_of(after_clearing(exchange<32, 32>([] { ptx::sync_block(); }, written, read)))));
}

TEST_CASE("checked: in a warp only its barrier orders memory: exchanges, votes and matrix instructions do not") {
  int written = 0, read = 0;
  const auto race = [&](auto between) { return faults_of(after_clearing(exchange<32, 1>(between, written, read))); };
  CHECK(all_have(race([] {}), written, read, "a race"));
  CHECK(all_have(race([] { sim::shuffle_xor(1, 1); }), written, read, "a race"));
  CHECK(all_have(race([] { ptx::any_in_warp(true); }), written, read, "a race"));
  CHECK(all_have(race([] { sim::ballot(true); }), written, read, "a race"));
  CHECK(all_have(race([] {
                   int registers = 0;
                   sim::matrix_instruction("test", registers, [](std::span<int* const>) {});
                 }),
                 written, read, "a race"));
  CHECK(all_empty(race([] { ptx::sync_warp(); })));
}

TEST_CASE("checked: waves of 64 lanes") {
  int written = 0, read = 0;
  CHECK(all_empty(faults_of<64>(after_clearing(exchange<64, 32>([] { ptx::sync_warp(); }, written, read)))));
  CHECK(
      all_have(faults_of<64>(after_clearing(exchange<64, 32>([] {}, written, read))), written, read, "(warp 0, lane "));
}

TEST_CASE("checked: two writes, and a write after a read") {
  int first = 0;
  const auto writers = [&] {
    first = __LINE__ + 1;
    if (thread() % 32 == 0) *shared<int>() = thread();
  };
  CHECK(all_have(faults_of(writers), first,
                 "writes 4 bytes at offset 0 of the 1024 bytes of shared memory, which thread"));
  int read = 0, written = 0;
  const auto reader = [&](bool mended) {
    return after_clearing([&read, &written, mended] {
      if (thread() < 32) {
        read = __LINE__ + 1;
        shared<int>()[64 + thread()] = shared<int>()[7];
      }
      if (mended) ptx::sync_block();
      written = __LINE__ + 1;
      if (thread() == 40) shared<int>()[7] = 1;
    });
  };
  CHECK(all_have(faults_of(reader(false)), read, written, "a race"));
  CHECK(all_empty(faults_of(reader(true))));
}

TEST_CASE("checked: bytes of a word are told apart") {
  CHECK(all_empty(faults_of([] {
    shared<std::uint8_t>()[thread()] = 1;
    ptx::sync_block();
    if (thread() < 16) shared<int>()[64 + thread()] = shared<int>()[thread()];
  })));
  CHECK(
      all_have(faults_of([] { shared<std::uint8_t>()[thread() / 2 * 2] = 1; }), "writes 1 bytes at offset", "a race"));
  CHECK(all_have(faults_of([] {  // three of four bytes are written
                   if (thread() < 3) shared<std::uint8_t>()[thread()] = 1;
                   ptx::sync_block();
                   if (thread() == 0) shared<int>()[1] = shared<int>()[0];
                 }),
                 "reads 4 bytes at offset 0", "which nothing has written"));
}

TEST_CASE("checked: named barriers order for those who wait at them, not for those who only arrive") {
  int written = 0, read = 0;
  const auto producer_and_consumer = [&](bool mended, bool turned) {
    return after_clearing([&written, &read, mended, turned] {
      const bool produces = (thread() < 32) != turned;
      if (produces) {
        written = __LINE__ + 1;
        shared<int>()[thread() % 32] = thread();
      }
      if (mended || thread() >= 32)
        ptx::sync_named(1, 64);
      else
        ptx::arrive_named(1, 64);
      if (!produces) {
        read = __LINE__ + 1;
        shared<int>()[64 + thread()] = shared<int>()[thread() % 32];
      }
    });
  };
  CHECK(all_empty(faults_of(producer_and_consumer(false, false))));  // the producer arrives, the consumer waits
  CHECK(all_empty(faults_of(producer_and_consumer(true, true))));
  CHECK(all_have(faults_of(producer_and_consumer(false, true)), written, read, "a race"));
}

TEST_CASE("checked: barriers in shared memory order arrivals before waits") {
  int written = 0, read = 0;
  const auto handed_over = [&](bool waits, bool arrives_late) {
    return [&written, &read, waits, arrives_late] {
      ptx::shared_barrier& barrier = *shared<ptx::shared_barrier>(512);
      if (thread() == 0) barrier.init(32);
      if (thread() >= 32) shared<int>()[thread() % 32] = 0;
      ptx::sync_block();
      if (thread() < 32) {
        if (!arrives_late) barrier.arrive();
        written = __LINE__ + 1;
        shared<int>()[thread()] = thread();
        if (arrives_late) barrier.arrive();
      } else {
        if (waits) barrier.wait(0);
        read = __LINE__ + 1;
        shared<int>()[64 + thread()] = shared<int>()[thread() % 32 ^ 1];
      }
    };
  };
  CHECK(all_empty(faults_of(handed_over(true, true))));
  CHECK(all_have(faults_of(handed_over(false, true)), written, read, "a race"));
  CHECK(all_have(faults_of(handed_over(true, false)), written, read, "a race"));
  CHECK(all_have(faults_of([] {  // the others may come to a barrier before it is one
                   if (thread() == 0) shared<ptx::shared_barrier>(512)->init(64);
                   ptx::sync_warp();
                   if (thread() < 32) shared<ptx::shared_barrier>(512)->arrive();
                   if (thread() == 33) *shared<int>(516) = 0;
                 }),
                 "a race"));
}

TEST_CASE("checked: blocks of a launch have no order, one after another or not") {
  std::vector<int> global(64, 0);
  const std::vector<sim::checks::range> buffers{{global.data(), 256}};
  int at = 0;
  for (const int resident : {1, 2}) {
    const auto race = [&] {
      at = __LINE__ + 1;
      if (thread() == 0) global[5] = 1;
    };
    CHECK(all_have(
        faults_of(race, {.blocks = 2, .resident = resident}, buffers), at, "a race",
        "writes 4 bytes at offset 20 of global buffer 0 (256 bytes), which thread 0 (warp 0, lane 0) of block"));
    CHECK(all_empty(faults_of(
        [&] {
          if (thread() == 0) global[static_cast<std::size_t>(ptx::block_index())] = 1;
        },
        {.blocks = 2, .resident = resident}, buffers)));
  }
  // Turns are passed by a release and waited for by an acquire.
  std::int32_t turn = 0;
  const auto in_turns = [&](bool waits) {
    return [&, waits] {
      if (thread() != 0) return;
      const auto number = static_cast<std::int32_t>(ptx::block_index());
      if (waits) ptx::wait_turn(&turn, number);
      global[5] += number;
      ptx::pass_turn(&turn, number + 1);
      if (waits && number == 3) turn = 0;
    };
  };
  const std::vector<sim::checks::range> both{buffers[0], {&turn, 4}};
  CHECK(all_empty(faults_of<32, 32>(in_turns(true), {.blocks = 4, .resident = 2}, both)));
  CHECK(all_have(faults_of<32, 32>(in_turns(false), {.blocks = 4, .resident = 2}, both), "a race"));
}

TEST_CASE("checked: atomics order by their own order or by the fences around them") {
  struct message {
    int data;
    int ready;
  };
  std::vector<message> memory(1);
  const std::vector<sim::checks::range> buffers{{memory.data(), sizeof(message)}};
  int written = 0, read = 0;
  const auto sent = [&](bool fence_before, bool fence_behind, sim::order store, sim::order load) {
    memory[0] = {};
    return faults_of<32, 32>(
        [&, fence_before, fence_behind, store, load] {
          message& m = memory[0];
          if (thread() != 0) return;
          if (ptx::block_index() == 0) {
            written = __LINE__ + 1;
            m.data = 1;
            if (fence_before) sim::fence();
            sim::atomic_store(&m.ready, 1, store);
          } else if (sim::atomic_load(&m.ready, load) == 1) {
            if (fence_behind) sim::fence();
            read = __LINE__ + 1;
            m.data = 2;
          }
        },
        {.blocks = 2, .resident = 1}, buffers);
  };
  using enum sim::order;
  CHECK(all_have(sent(false, false, relaxed, relaxed), written, read, "a race"));
  CHECK(all_have(sent(true, false, relaxed, relaxed), written, read, "a race"));
  CHECK(all_have(sent(false, true, relaxed, relaxed), written, read, "a race"));
  CHECK(all_have(sent(false, false, release, relaxed), written, read, "a race"));
  CHECK(all_empty(sent(true, true, relaxed, relaxed)));
  CHECK(all_empty(sent(false, false, release, acquire)));
  CHECK(all_empty(sent(true, false, relaxed, acquire)));

  // The same in C++'s own words.
  const auto in_words = [&](std::memory_order store, std::memory_order load) {
    memory[0] = {};
    return faults_of<32, 32>(
        [&, store, load] {
          message& m = memory[0];
          if (thread() != 0) return;
          if (ptx::block_index() == 0) {
            m.data = 1;
            std::atomic_ref(m.ready).store(1, store);
          } else if (std::atomic_ref(m.ready).load(load) == 1) {
            m.data = 2;
          }
        },
        {.blocks = 2, .resident = 1}, buffers);
  };
  CHECK(all_have(in_words(std::memory_order_relaxed, std::memory_order_relaxed), "a race"));
  CHECK(all_empty(in_words(std::memory_order_release, std::memory_order_acquire)));
}

TEST_CASE("checked: atomics race with plain accesses, each of them, and not with each other") {
  const auto sum = [](bool mended) {
    return [=] {
      if (thread() == 0) *shared<std::int32_t>() = 0;
      ptx::sync_block();
      ptx::atomic_add(shared<std::int32_t>(), 1);
      if (mended)
        ptx::sync_block();
      else
        ptx::sync_warp();
      if (thread() == 5) shared<std::int32_t>()[1] = *shared<std::int32_t>();
    };
  };
  CHECK(all_empty(faults_of(sum(true))));
  CHECK(all_have(faults_of(sum(false)), "at offset 0", "a race"));
}

TEST_CASE("checked: shared memory that nothing has written") {
  int read = 0;
  const auto half = [&](int threads_that_write) {
    return [&read, threads_that_write] {
      if (thread() < threads_that_write) shared<int>()[thread()] = 1;
      ptx::sync_block();
      read = __LINE__ + 1;
      shared<int>()[64 + thread()] = shared<int>()[63 - thread()];
    };
  };
  CHECK(all_have(faults_of(half(63)), read, "thread 0 (warp 0, lane 0)",
                 "reads 4 bytes at offset 252 of the 1024 bytes of shared memory, which nothing has written"));
  CHECK(all_empty(faults_of(half(64))));
}

TEST_CASE("checked: out of the bounds of shared memory") {
  int at = 0;
  const auto access = [&](int index) {
    return [&at, index] {
      at = __LINE__ + 1;
      if (thread() == 9) shared<int>()[index] = 1;
    };
  };
  CHECK(all_have(faults_of(access(256)), at, "thread 9 (warp 0, lane 9) of block 0",
                 "writes 4 bytes at offset 1024 of the 1024 bytes of shared memory: out of bounds"));
  CHECK(all_empty(faults_of(access(255))));
  CHECK(all_have(faults_of<32, 32, 1022>(access(255)), "out of bounds"));  // the last two bytes
}

TEST_CASE("checked: out of the bounds of global memory") {
  std::vector<int> all(96);
  const std::vector<sim::checks::range> buffers{{all.data() + 32, 128}, {all.data() + 80, 16}};
  int at = 0;
  const auto access = [&](int index) {
    return faults_of<32, 32>(
        [&, index] {
          at = __LINE__ + 1;
          if (thread() == 9) all.data()[32 + index] = 1;
        },
        {}, buffers);
  };
  CHECK(all_have(access(32), at, "thread 9",
                 "writes 4 bytes at offset 128 of global buffer 0 (128 bytes): out of bounds"));
  CHECK(all_have(access(-1), at, "offset -4 of global buffer 0"));
  CHECK(all_have(access(47), at, "offset -4 of global buffer 1 (16 bytes)"));
  for (const int index : {0, 31, 48, 51}) CHECK(all_empty(access(index)));
  const auto over_the_end = [&] {
    if (thread() == 0) *reinterpret_cast<std::uint64_t*>(all.data() + 62) = 0;
  };
  CHECK(all_have(faults_of<32, 32>(over_the_end, {}, {{all.data(), 252}}), "offset 248", "out of bounds"));
  CHECK(all_empty(faults_of<32, 32>(over_the_end, {}, {{all.data(), 256}})));
}

TEST_CASE("checked: vectors that are not aligned") {
  using vector = std::uint32_t __attribute__((vector_size(16)));
  int at = 0;
  const auto load = [&](int offset) {
    return after_clearing([&at, offset] {
      if (thread() != 3) return;
      at = __LINE__ + 1;
      *shared<vector>(512) = *shared<vector>(offset);
    });
  };
  CHECK(all_have(faults_of(load(8)), at, "thread 3", "accesses 16 bytes at once at offset 8", "not a multiple of 16"));
  CHECK(all_empty(faults_of(load(16))));
  const auto word = [&](int offset) {
    return after_clearing([&at, offset] {
      at = __LINE__ + 1;
      if (thread() == 3) *shared<int>(offset) = 1;
    });
  };
  CHECK(all_have(faults_of(word(6)), at, "accesses 4 bytes at once at offset 6"));
  CHECK(all_empty(faults_of(word(8))));
  // By the machine's own loads, where the compiler sees bytes.
  const auto machine_load = [&](int offset) {
    return [&at, offset] {
      at = __LINE__ + 1;
      sim::check_vector(ptx::shared_memory() + offset, 16);
    };
  };
  CHECK(all_have(faults_of(machine_load(24)), at, "not a multiple of 16"));
  CHECK(all_empty(faults_of(machine_load(32))));
}
