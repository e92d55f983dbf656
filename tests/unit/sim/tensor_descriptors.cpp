// SPDX-License-Identifier: Apache-2.0
// The fields of tcgen05 descriptors stand where the PTX ISA's tables ("shared memory descriptor"; "instruction
// descriptor" for .kind::f8f6f4 and for .kind::mxf8f6f4) put them, whose bits are written out here once more.
#include <octavo/backends/cuda/ptx/tcgen05_descriptors.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <random>

namespace {

namespace ptx = octavo::backends::ptx;
using octavo::e4m3;
using octavo::e5m2;
using shared = ptx::shared_descriptor;
using instruction = ptx::instruction_descriptor;

/// Bits first to last of a word, all set.
constexpr std::uint64_t bits(int first, int last) { return (2ull << last) - (1ull << first); }

/// What a field changes in a word.
std::uint64_t changed(const shared& with) {
  return with.encode() ^ shared { .constant = with.constant }.encode();
}
/// With all fields 0.
instruction none(bool scaled) { return {.scaled = scaled, .rows = 0, .sum_type = 0, .e8m0_scales = false}; }

}  // namespace

TEST_CASE("sim: tcgen05: fields of the shared memory descriptor") {
  CHECK(shared{.constant = 0}.encode() == 0);
  CHECK(shared{.constant = 7}.encode() == bits(46, 48));
  CHECK(shared{}.encode() == 1ull << 46);
  CHECK(changed({.start = 0x3fff0}) == bits(0, 13));
  CHECK(changed({.leading = 0x3fff0}) == bits(16, 29));
  CHECK(changed({.stride = 0x3fff0}) == bits(32, 45));
  CHECK(changed({.base_offset = 7}) == bits(49, 51));
  CHECK(changed({.leading_is_absolute = true}) == bits(52, 52));
  CHECK(changed({.pattern = static_cast<ptx::swizzle>(7)}) == bits(61, 63));
  CHECK(changed({.start = 16}) == 1);  // the first of its bits is a unit
  CHECK(changed({.pattern = ptx::swizzle::bytes_128}) == 2ull << 61);
  CHECK(changed({.pattern = ptx::swizzle::bytes_64}) == 4ull << 61);
  CHECK(changed({.pattern = ptx::swizzle::bytes_32}) == 6ull << 61);
}

TEST_CASE("sim: tcgen05: fields of the instruction descriptor, of both kinds") {
  for (const bool scaled : {false, true}) {
    CHECK(none(scaled).encode() == 0);
    const auto with = [scaled](auto set) {
      instruction d = none(scaled);
      set(d);
      return d.encode();
    };
    CHECK(with([](instruction& d) { d.sparsity_selector = 3; }) == bits(0, 1));
    CHECK(with([](instruction& d) { d.sparse = true; }) == bits(2, 2));
    CHECK(with([](instruction& d) { d.a_type = 7; }) == bits(7, 9));
    CHECK(with([](instruction& d) { d.b_type = 7; }) == bits(10, 12));
    CHECK(with([](instruction& d) { d.negate_a = true; }) == bits(13, 13));
    CHECK(with([](instruction& d) { d.negate_b = true; }) == bits(14, 14));
    CHECK(with([](instruction& d) { d.a_major = ptx::major::r; }) == bits(15, 15));
    CHECK(with([](instruction& d) { d.b_major = ptx::major::r; }) == bits(16, 16));
    CHECK(with([](instruction& d) { d.columns = 63 * 8; }) == bits(17, 22));
    CHECK(with([](instruction& d) { d.columns = 8; }) == bits(17, 17));
    CHECK(with([](instruction& d) { d.sum_type = 3; }) == (scaled ? 0 : bits(4, 5)));
    CHECK(with([](instruction& d) { d.b_scale_byte = 3; }) == (scaled ? bits(4, 5) : 0));
    CHECK(with([](instruction& d) { d.e8m0_scales = true; }) == (scaled ? bits(23, 23) : 0));
    CHECK(with([](instruction& d) { d.a_scale_byte = 3; }) == (scaled ? bits(29, 30) : 0));
    CHECK(with([](instruction& d) { d.rows = 128; }) == bits(27, 27));
    CHECK(with([scaled](instruction& d) { d.rows = scaled ? 3 * 128 : 31 * 16; }) ==
          (scaled ? bits(27, 28) : bits(24, 28)));
  }
}

TEST_CASE("sim: tcgen05: fields are decoded from the bits that they are encoded in, and reserved bits are seen") {
  const std::uint64_t reserved = bits(14, 15) | bits(30, 31) | bits(53, 60);
  const std::uint64_t reserved_plain = bits(3, 3) | bits(6, 6) | bits(23, 23) | bits(29, 31);
  const std::uint64_t reserved_scaled = bits(3, 3) | bits(6, 6) | bits(24, 26) | bits(31, 31);
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t word = random();
    CHECK(shared::decode(word).encode() == (word & ~reserved));
    CHECK(shared::decode(shared::decode(word).encode()) == shared::decode(word));
    const auto half = static_cast<std::uint32_t>(word >> 7);
    for (const bool scaled : {false, true}) {
      const instruction d = instruction::decode(half, scaled);
      CHECK(d.encode() == (half & ~(scaled ? reserved_scaled : reserved_plain)));
      CHECK(instruction::decode(d.encode(), scaled) == d);
    }
  }
}

TEST_CASE("sim: tcgen05: words that the kernels make") {
  using ptx::mma_instruction, ptx::shared_operand;
  CHECK(mma_instruction::plain<e4m3, e4m3>(128).bits == 0x08200010u);
  CHECK(mma_instruction::plain<e5m2, e4m3>(256).bits == 0x08400090u);
  CHECK(mma_instruction::scaled<e4m3, e4m3>(128).bits == 0x08a00000u);
  CHECK(mma_instruction::scaled<e4m3, e5m2>(64, ptx::major::r, ptx::major::r).bits == 0x08918400u);
  CHECK(mma_instruction::scaled<e4m3, e4m3>(128).scale_bytes(3, 2).bits == 0x68a00020u);
  CHECK(mma_instruction::scaled<e4m3, e4m3>(128).scale_bytes(3, 2).scale_bytes(0, 1).bits == 0x08a00010u);
  CHECK(shared_operand::of(0x400, 16, 1024, ptx::swizzle::bytes_128).bits == 0x4000404000010040u);
  CHECK(shared_operand::of(0x400, 16, 512, ptx::swizzle::bytes_64).bits == 0x8000402000010040u);
  CHECK(shared_operand::of(0x2000, 2048, 128, ptx::swizzle::none).bits == 0x0000400800800200u);
  CHECK(shared_operand::of(0x400, 16, 256, ptx::swizzle::bytes_32).advanced(0x20).bits == 0xc000401000010042u);
}
