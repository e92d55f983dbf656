// SPDX-License-Identifier: Apache-2.0
// Operands of the products that devices compute for golden files.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cuda/golden_file.hpp"

namespace golden {

/// splitmix64.
struct random_source {
  std::uint64_t state;
  std::uint64_t next() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
};

/// What operands a product has.
enum class kind {
  full,        ///< every code but NaN; C from far below the products to far above
  small,       ///< subnormal and small normal codes, and C as small
  cancelling,  ///< B such that products cancel pairwise to small rests
  nan,         ///< a few NaN
};

inline product draw(std::uint32_t rows, std::uint32_t columns, std::uint32_t steps, kind how, std::uint64_t seed,
                    bool scaled = false) {
  random_source random{seed};
  product p;
  p.rows = rows;
  p.columns = columns;
  p.steps = steps;
  p.scaled = scaled;
  p.size();
  const auto code = [&] {
    for (;;) {
      const auto c = static_cast<std::uint8_t>(random.next() >> 56);
      if ((c & 0x7f) == 0x7f) continue;  // NaN
      if (how == kind::small && (c & 0x7f) >= 0x20) continue;
      return c;
    }
  };
  for (std::uint8_t& x : p.a) x = code();
  for (std::uint8_t& x : p.b) x = code();
  if (how == kind::cancelling)
    for (std::size_t k = 0; k + 1 < 32 * steps; k += 2) {
      for (std::size_t r = 0; r < rows; ++r) p.a[r * 32 * steps + k + 1] = p.a[r * 32 * steps + k];
      for (std::size_t c = 0; c < columns; ++c)
        p.b[c * 32 * steps + k + 1] = p.b[c * 32 * steps + k] ^ (random.next() % 8 == 0 ? 0x81 : 0x80);
    }
  if (how == kind::cancelling)
    for (std::uint8_t& x : p.b)
      if ((x & 0x7f) == 0x7f) x ^= 1;
  if (how == kind::nan) p.a[5] = 0x7f, p.b[70] = 0xff;
  const int low = how == kind::small ? -24 : -10, span = how == kind::small ? 20 : 32;
  for (std::size_t i = 0; i < p.c.size(); ++i) {
    const double fraction = 1 + static_cast<double>(random.next() >> 12) * 0x1p-52;
    const double x = std::ldexp(fraction, low + static_cast<int>(random.next() % static_cast<unsigned>(span)));
    p.c[i] = i % 11 == 0 ? 0.0f : static_cast<float>(random.next() % 2 != 0 ? x : -x);
  }
  for (std::uint8_t& x : p.a_scale) x = static_cast<std::uint8_t>(120 + random.next() % 15);
  for (std::uint8_t& x : p.b_scale) x = static_cast<std::uint8_t>(120 + random.next() % 15);
  return p;
}

/// Of wgmma, 64 rows.
inline std::vector<product> wgmma_products() {
  std::vector<product> all;
  for (std::uint32_t steps = 1; steps <= 4; ++steps) all.push_back(draw(64, 64, steps, kind::full, steps));
  all.push_back(draw(64, 64, 1, kind::small, 11));
  all.push_back(draw(64, 64, 1, kind::cancelling, 12));
  all.push_back(draw(64, 64, 2, kind::cancelling, 13));
  all.push_back(draw(64, 64, 1, kind::nan, 14));
  all.push_back(draw(64, 128, 1, kind::full, 15));
  all.push_back(draw(64, 128, 4, kind::full, 16));
  return all;
}
/// Of mma.sync m16n8k32.
inline std::vector<product> mma_products() {
  std::vector<product> all;
  for (std::uint32_t i = 0; i < 24; ++i)
    all.push_back(draw(16, 8, 1 + i % 4,
                       i % 6 == 4   ? kind::small
                       : i % 6 == 5 ? kind::cancelling
                                    : kind::full,
                       100 + i));
  return all;
}
/// Of tcgen05, 128 rows.
inline std::vector<product> tcgen05_products() {
  std::vector<product> all;
  for (const bool scaled : {false, true}) {
    for (std::uint32_t steps = 1; steps <= 4; ++steps)
      all.push_back(draw(128, 64, steps, kind::full, 200 + steps, scaled));
    all.push_back(draw(128, 64, 1, kind::small, 211, scaled));
    all.push_back(draw(128, 64, 2, kind::cancelling, 212, scaled));
    all.push_back(draw(128, 64, 1, kind::nan, 213, scaled));
    all.push_back(draw(128, 128, 2, kind::full, 214, scaled));
  }
  return all;
}

}  // namespace golden
