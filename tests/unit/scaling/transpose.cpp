// SPDX-License-Identifier: Apache-2.0
#include <octavo/scaling/transpose.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace octavo;

TEST_CASE("a transposed payload holds the same bytes, padded with zeros to whole rows of 16") {
  for (const std::int64_t tokens : {0, 1, 15, 16, 17, 130})
    for (const int d : {32, 64}) {
      const std::int64_t stride = 3 * d;  // other heads stand between
      std::vector<std::uint8_t> from(static_cast<std::size_t>(tokens * stride));
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 37 + 1);
      std::vector<std::uint8_t> to(static_cast<std::size_t>(d * transposed_stride(tokens)), 0xaa);
      transpose_payload(from.data(), stride, tokens, d, to.data());
      CHECK(transposed_stride(tokens) % 16 == 0);
      for (int c = 0; c < d; ++c)
        for (std::int64_t i = 0; i < transposed_stride(tokens); ++i) {
          const std::uint8_t expected = i < tokens ? from[static_cast<std::size_t>(i * stride + c)] : 0;
          REQUIRE(to[static_cast<std::size_t>(c * transposed_stride(tokens) + i)] == expected);
        }
    }
}
