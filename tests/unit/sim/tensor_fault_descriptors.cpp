// SPDX-License-Identifier: Apache-2.0
// Descriptors of tcgen05 that are wrong are refused, each for its reason.
#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "unit/sim/tensor_faults.hpp"

namespace {

using namespace sim_test;
using namespace sim_test::tensor_faulty;

}  // namespace

TEST_CASE("sim: tcgen05: descriptors") {
  const auto with = [](auto a, ptx::mma_instruction how) {
    return [=] {
      begin();
      if (self() == 0) {
        ptx::tcgen05_mma(frame.address(), a(), operand(1), how, false);
        ptx::tcgen05_commit(frame.barrier(0));
      }
      wait();
      frame.end();
    };
  };
  const auto changed = [](std::uint64_t set, std::uint64_t clear) {
    return [=] { return ptx::shared_operand{(operand(0).bits & ~clear) | set}; };
  };
  CHECK(fault_of(with(changed(0, 0), plain)) == "");
  CHECK(has(fault_of(with(changed(0, 1ull << 46), plain)), "whose bits 46 to 48 are not 1"));  // wgmma's descriptor
  CHECK(has(fault_of(with(changed(1ull << 49, 0), plain)), "with a base offset"));
  CHECK(has(fault_of(with(changed(1ull << 52, 0), plain)), "with an absolute leading address"));
  CHECK(has(fault_of(with(changed(1ull << 60, 0), plain)), "with a reserved bit"));
  CHECK(has(fault_of(with(changed(7ull << 61, 7ull << 61), plain)), "with swizzle 7, which is invalid"));
  CHECK(has(fault_of(with(changed(1ull << 61, 7ull << 61), plain)), "swizzled by 32-byte atoms"));
  CHECK(has(fault_of(with(changed(0, 0x3fff), plain)), "outside of shared memory"));
  CHECK(has(fault_of(with(changed(0x3fffull << 32, 0), plain)), "outside of shared memory"));
  CHECK(has(fault_of(with([] { return operand(0).advanced(16); }, plain)), "past the end of a row of 32 bytes"));
  CHECK(has(fault_of(with([] { return operand(0).advanced(64); }, plain)), "in the middle of a swizzle pattern"));

  const auto instruction = [](std::uint32_t set, std::uint32_t clear) {
    return ptx::mma_instruction{(plain.bits & ~clear) | set};
  };
  CHECK(has(fault_of(with(changed(0, 0), instruction(0, 3u << 4))), "whose sums are not FP32"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(5u << 7, 0))), "of element types other than E4M3 and E5M2"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(1u << 14, 0))), "that negates an operand"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(1u << 2, 0))), "of a sparse product"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(0, 63u << 17))), "whose N is not a multiple of 16"));
  CHECK(has(fault_of(with(changed(0, 0), instruction(4u << 24, 31u << 24))), "of other than 128 rows of one block"));
  CHECK(has(fault_of(with(changed(0, 0), scaled)), "with a reserved bit for kind::f8f6f4"));
  CHECK(has(fault_of([] {
              begin();
              const ptx::tensor_address t = frame.address();
              if (self() == 0) ptx::tcgen05_mma_scaled(t, operand(0), operand(1), plain, t, t, false);
              frame.end();
            }),
            "whose scales are not E8M0 for kind::mxf8f6f4"));
  CHECK(has(fault_of([] {
              begin();
              const ptx::tensor_address t = frame.address();
              if (self() == 0) ptx::tcgen05_mma(t.lane(32), operand(0), operand(1), plain, false);
              frame.end();
            }),
            "gives D in lane 32"));
}
