// SPDX-License-Identifier: Apache-2.0
// NVIDIA's lane machine on its model.
#include <octavo/backends/cuda/simt/scaled_machine.hpp>

#include <doctest/doctest.h>

#include "unit/simt/block_scale_checks.hpp"

using namespace simt_test;
using octavo::backends::nvidia::machine;

TEST_CASE("simt: mma.sync has its elements where its atom says") {
  for (const auto how : {sim::accumulation::ideal, sim::accumulation::model}) {
    check_products<machine, e4m3, e4m3>(how);
    check_products<machine, e5m2, e4m3>(how);
    check_products<machine, e4m3, e5m2>(how);
  }
  check_rows_and_columns<machine>();
}

TEST_CASE("simt: accumulators of mma.sync, rounded where they are, meet a column image's tokens") {
  check_chain<machine>();
}

TEST_CASE("simt: the quantise kernel makes what the quantiser makes (NVIDIA's images)") {
  check_quantise<machine, recipe::tile, e4m3, 64>(dtype::bf16, 64, false, 0);
  check_quantise<machine, recipe::tile, e4m3, 128>(dtype::f32, 96, true, 1);
  check_quantise<machine, recipe::token, e4m3, 128>(dtype::f16, 128, true, 2);
  check_quantise<machine, recipe::token, e4m3, 256>(dtype::bf16, 192, false, 3);
  check_quantise<machine, recipe::token, e5m2, 64>(dtype::f32, 32, false, 5);
}

TEST_CASE("simt: pieces arrive no earlier than they are waited for") {
  alignas(16) char source[64];
  std::memset(source, 7, sizeof source);
  int early = 0, late = 0;
  run_warp<machine, 64>([&] {
    char* const to = machine::shared() + 16 * (machine::thread_index() % 2);
    machine::transfer<1> t;
    if (machine::thread_index() < 2) t.start(0, to, source + 16 * machine::thread_index());
    t.deliver();
    if (machine::thread_index() < 2) early += to[3] == 7;
    machine::wait_transfers<1>();
    if (machine::thread_index() < 2) early += to[3] == 7;
    machine::wait_transfers<0>();
    if (machine::thread_index() < 2) late += to[3] == 7;
  });
  CHECK(early == 0);
  CHECK(late == 2);
  const std::string forgotten = fault_of<machine, 64>([&] {
    machine::transfer<1> t;
    t.start(0, machine::shared(), source);
    t.deliver();
  });
  CHECK(forgotten.find("under way that it has not waited for") != std::string::npos);
  const std::string askew = fault_of<machine, 64>([&] {
    machine::transfer<1> t;
    t.start(0, machine::shared() + 8, source);
  });
  CHECK(askew.find("not 16-byte aligned") != std::string::npos);
}

TEST_CASE("simt: the scales in operand blocks of sm_120a reach what they belong to") {
  check_block_scales<nvidia::scaled_machine>();
  check_scaled_chain<nvidia::scaled_machine, e4m3>();
}

TEST_CASE("simt: the quantise kernel makes both payloads of mx32 (NVIDIA's images)") {
  check_quantise_blocks<nvidia::scaled_machine, 64>(dtype::f32, 64, true, 0);
  check_quantise_blocks<nvidia::scaled_machine, 256>(dtype::bf16, 160, false, 1);
}
