// SPDX-License-Identifier: Apache-2.0
// NVIDIA's lane machine on its model.
#include <octavo/backends/cuda/simt/scaled_atom.hpp>

#include <doctest/doctest.h>

#include "unit/simt/machine_checks.hpp"

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

TEST_CASE("simt: the scaled product takes the scale of each row of both operands") {
  using atom = octavo::backends::nvidia::scaled_mma_atom;
  using at = simt::image_layout<machine>;
  std::mt19937 random(9);
  float l[16][32], r[16][32];
  int l_exponent[16], r_exponent[16];
  std::vector<std::uint8_t> operands(2 * at::block_bytes);
  for (int i = 0; i < 16; ++i) {
    l_exponent[i] = static_cast<int>(random() % 9) - 4, r_exponent[i] = static_cast<int>(random() % 9) - 4;
    for (int k = 0; k < 32; ++k) {
      l[i][k] = static_cast<float>(random() % 15) - 7, r[i][k] = static_cast<float>(random() % 15) - 7;
      operands[at::byte_at(i, k)] = operand_byte<machine, e4m3>(l[i][k]);
      operands[at::block_bytes + at::byte_at(i, k)] = operand_byte<machine, e4m3>(r[i][k]);
    }
  }
  int wrong = 0;
  run_warp<machine, 2 * at::block_bytes>([&] {
    const int lane = machine::thread_index();
    if (lane == 0) std::memcpy(machine::shared(), operands.data(), operands.size());
    machine::sync_block();
    const auto* image = reinterpret_cast<const std::uint8_t*>(machine::shared());
    simt::lane_operand<machine, false> left, right;
    simt::load_block(image, 0, lane, left);
    simt::load_block(image, 1, lane, right);
    const auto scale = [&](const int(&exponent)[16]) {
      return e8m0::from_exponent(exponent[atom::scale_row(lane)]).bits |
             (random() << 8);  // the lowest byte alone counts
    };
    float d[atom::sums] = {};
    atom::mma(d, left.words, right.words, static_cast<std::uint32_t>(scale(l_exponent)),
              static_cast<std::uint32_t>(scale(r_exponent)));
    for (int i = 0; i < atom::sums; ++i) {
      const int row = atom::sum_row(lane, i), column = atom::sum_column(lane, i);
      float sum = 0;
      for (int k = 0; k < 32; ++k) sum += l[row][k] * r[column][k];
      wrong += d[i] != std::ldexp(sum, l_exponent[row] + r_exponent[column]);
    }
  });
  CHECK(wrong == 0);
}
