// SPDX-License-Identifier: Apache-2.0
// Where the elements of CDNA's matrix instructions are: the atoms' formulas against what comes out when one element of an
// operand is not zero, and against AMD's formulas for the way back, from an element to its lane and register.
#include <octavo/backends/hip/cdna3/atoms.hpp>
#include <octavo/backends/hip/cdna4/atoms.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <type_traits>
#include <vector>

#include "unit/hip/support.hpp"

namespace {

using namespace hip_test;
using octavo::e4m3, octavo::e5m2;

/// Bytes of an operand and accumulators of a wave, by lane.
template <class Atom>
struct wave_registers {
  std::uint32_t left[64][Atom::words] = {}, right[64][Atom::words] = {};
  float d[64][Atom::sums] = {};

  static void set(std::uint32_t (&operand)[64][Atom::words], int lane, int byte, std::uint8_t code) {
    reinterpret_cast<std::uint8_t*>(operand[lane])[byte] = code;
  }
  void multiply() {
    in_wave([this](int lane) { Atom::mma(d[lane], left[lane], right[lane]); });
  }
};

/// The byte of 1 and of other numbers, as the atom reads them.
template <class Atom>
std::uint8_t code_of(float x) {
  return Atom::unit == 1.0f ? e4m3::nearest_even(x).bits : octavo::e4m3fnuz::nearest_even(x / 2).bits;
}

/// A number for each k that tells it from the others when two columns are seen: 8 x 8 digits, 8 to 15 and 16 to 30.
float first_digit(int k) { return static_cast<float>(8 + k % 8); }
float second_digit(int k) { return static_cast<float>(8 + k / 8 % 8); }
float third_digit(int k) { return static_cast<float>(8 + k / 64); }

template <class Atom>
int misplaced_elements() {
  int wrong = 0;
  for (int lane = 0; lane < 64; ++lane)
    for (int byte = 0; byte < Atom::words * 4; ++byte) {
      // One element of the left operand; columns 0, 1 and 2 of the right one hold the digits of k.
      wave_registers<Atom> w;
      w.set(w.left, lane, byte, code_of<Atom>(1));
      for (int other = 0; other < 64; ++other)
        for (int b = 0; b < Atom::words * 4; ++b) {
          const int column = Atom::operand_row(other, b / 4), k = Atom::operand_depth(other, b / 4) + b % 4;
          const float digit = column == 0 ? first_digit(k) : column == 1 ? second_digit(k) : third_digit(k);
          w.set(w.right, other, b, code_of<Atom>(digit));
        }
      w.multiply();
      const int row = Atom::operand_row(lane, byte / 4), k = Atom::operand_depth(lane, byte / 4) + byte % 4;
      for (int at = 0; at < 64; ++at)
        for (int i = 0; i < Atom::sums; ++i) {
          const int column = Atom::sum_column(at, i);
          const float digit = column == 0 ? first_digit(k) : column == 1 ? second_digit(k) : third_digit(k);
          const float expected = Atom::sum_row(at, i) == row ? digit : 0.0f;
          wrong += w.d[at][i] * Atom::unit != expected;
        }
    }
  return wrong;
}

/// Every element of an atom, found by what AMD says of the instructions: `lane_of(row, k)`, `byte_of(k)` of one of them.
template <class Atom, class Lane, class Byte, class DLane, class DRegister>
int disagreements(int depth_of_one, Lane lane_of, Byte byte_of, DLane d_lane, DRegister d_register) {
  int wrong = 0;
  for (int row = 0; row < Atom::size; ++row)
    for (int k = 0; k < Atom::depth; ++k) {
      const int instruction = k / depth_of_one, inner = k % depth_of_one;
      const int lane = lane_of(row, inner);
      const int byte = instruction * Atom::size * depth_of_one / 64 + byte_of(inner);
      wrong += Atom::operand_row(lane, byte / 4) != row || Atom::operand_depth(lane, byte / 4) + byte % 4 != k;
    }
  // The instruction's D has the atom's columns as rows (i) and its rows as columns (j).
  for (int i = 0; i < Atom::size; ++i)
    for (int j = 0; j < Atom::size; ++j)
      wrong += Atom::sum_column(d_lane(i, j), d_register(i)) != i || Atom::sum_row(d_lane(i, j), d_register(i)) != j;
  return wrong;
}

}  // namespace

TEST_CASE_TEMPLATE("hip: one-hot operands of the matrix instructions come out where the atoms say", A,
                   cdna3::mfma_16<e4m3, e4m3>, cdna3::mfma_32<e4m3, e4m3>, cdna4::scaled_mfma_16<e4m3, e4m3>,
                   cdna4::scaled_mfma_32<e4m3, e4m3>) {
  CHECK(misplaced_elements<A>() == 0);
}

TEST_CASE("hip: the atoms agree with AMD's Matrix Instruction Calculator") {
  // A[i][k] lane: 16 * floor(k / 8) + i, GPR floor(k / 4) % 2, byte k % 4; D[i][j] lane: 16 * floor(i / 4) + j, GPR i % 4.
  CHECK(disagreements<cdna3::mfma_16<e4m3, e4m3>>(
            32, [](int i, int k) { return 16 * (k / 8) + i; }, [](int k) { return k / 4 % 2 * 4 + k % 4; },
            [](int i, int j) { return 16 * (i / 4) + j; }, [](int i) { return i % 4; }) == 0);
  // A[i][k] lane: 32 * floor(k / 8) + i; D[i][j] lane: (32 * floor(i / 4)) % 64 + j, GPR 4 * floor(i / 8) + i % 4.
  const auto d_lane_32 = [](int i, int j) { return 32 * (i / 4) % 64 + j; };
  const auto d_register_32 = [](int i) { return 4 * (i / 8) + i % 4; };
  CHECK(disagreements<cdna3::mfma_32<e4m3, e4m3>>(
            16, [](int i, int k) { return 32 * (k / 8) + i; }, [](int k) { return k / 4 % 2 * 4 + k % 4; }, d_lane_32,
            d_register_32) == 0);
  // CDNA4's article: lane t holds A[t % 32][t / 32 * 16 + i * 32 + j] in byte 16 i + j; 16 x 16 x 128 alike, with four groups
  // of lanes, A[t % 16][t / 16 * 16 + i * 64 + j], and D as 16 x 16 x 32.
  CHECK(disagreements<cdna4::scaled_mfma_32<e4m3, e4m3>>(
            64, [](int i, int k) { return 32 * (k / 16 % 2) + i; }, [](int k) { return k / 32 * 16 + k % 16; },
            d_lane_32, d_register_32) == 0);
  CHECK(disagreements<cdna4::scaled_mfma_16<e4m3, e4m3>>(
            128, [](int i, int k) { return 16 * (k / 16 % 4) + i; }, [](int k) { return k / 64 * 16 + k % 16; },
            [](int i, int j) { return 16 * (i / 4) + j; }, [](int i) { return i % 4; }) == 0);
}

TEST_CASE("hip: formats of the two operands keep their sides") {
  // 1.5 2^15 is a number of E5M2 and not of E4M3.
  using atom = cdna3::mfma_32<e5m2, e4m3>;
  wave_registers<atom> w;
  const std::uint8_t large = octavo::e5m2fnuz::nearest_even(16384.0f).bits;
  for (int lane = 0; lane < 64; ++lane)
    for (int byte = 0; byte < 16; ++byte) {
      w.set(w.left, lane, byte, large);
      w.set(w.right, lane, byte, code_of<atom>(1));
    }
  w.multiply();
  CHECK(w.d[5][3] * atom::unit == 32 * 32768.0f);
}

/// AMD's rule in numbers: the row and the block of 32 along the depth that the scale of a lane is for.
struct scale_rule {
  int rows, blocks;
  int row(int lane) const { return rows == 32 ? lane & 31 : lane & 15; }
  int block(int lane) const { return rows == 32 ? lane >> 5 : lane >> 4; }
};

TEST_CASE_TEMPLATE("hip: a scale of CDNA4 is for the row and block that AMD says", A, cdna4::scaled_mfma_16<e4m3, e4m3>,
                   cdna4::scaled_mfma_32<e4m3, e4m3>) {
  // v_mfma_scale_f32_16x16x128 and 32x32x64: lanes 0...15 (0...31) have the scales of elements 0...31 of their rows, the next
  // as many those of 32...63, and so on.
  constexpr scale_rule rule = A::size == 16 ? scale_rule{16, 4} : scale_rule{32, 2};
  static_assert(A::size == rule.rows && A::depth == 32 * rule.blocks);
  for (int lane = 0; lane < 64; ++lane) {
    CHECK(A::scale_row(lane) == rule.row(lane));
    CHECK(A::scale_block(lane) == rule.block(lane));
  }
  // Lane by lane, a scale of one operand that is not 1: of all sums only its row's (its column's) are more, by what its block
  // adds to them.
  int wrong = 0;
  for (int scaled = 0; scaled < 64; ++scaled)
    for (const bool of_left : {true, false}) {
      wave_registers<A> w;
      // Left: 1. Right: 2^b in block b.
      for (int lane = 0; lane < 64; ++lane)
        for (int byte = 0; byte < A::words * 4; ++byte) {
          const int k = A::operand_depth(lane, byte / 4) + byte % 4;
          w.set(w.left, lane, byte, code_of<A>(1));
          w.set(w.right, lane, byte, code_of<A>(octavo::exp2i(k / 32)));
        }
      in_wave([&](int lane) {
        const std::uint32_t scale = lane == scaled ? 130 : 127;  // 8 and 1
        if (of_left)
          A::mma(w.d[lane], w.left[lane], w.right[lane], scale, 127);
        else
          A::mma(w.d[lane], w.left[lane], w.right[lane], 127, scale);
      });
      const float all = 32.0f * static_cast<float>((1 << rule.blocks) - 1);
      const float more = 32.0f * 7 * static_cast<float>(1 << rule.block(scaled));
      for (int lane = 0; lane < 64; ++lane)
        for (int i = 0; i < A::sums; ++i) {
          const int at = of_left ? A::sum_row(lane, i) : A::sum_column(lane, i);
          wrong += w.d[lane][i] != all + (at == rule.row(scaled) ? more : 0.0f);
        }
    }
  CHECK(wrong == 0);
}
