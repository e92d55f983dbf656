// SPDX-License-Identifier: Apache-2.0
// Files of matrix products that a device computed, bit for bit: D = C + A B^T, step by step of 32 elements of K. All
// numbers little-endian: the number of products (u32), then for each its rows, columns, steps and whether it is scaled
// (u32), A [rows][32 steps] and B [columns][32 steps] as E4M3 codes, C and D [rows][columns] as FP32, and where it is
// scaled the E8M0 codes of A [rows][steps] and of B [columns][steps].
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

namespace golden {

struct product {
  std::uint32_t rows = 0, columns = 0, steps = 0, scaled = 0;
  std::vector<std::uint8_t> a, b, a_scale, b_scale;
  std::vector<float> c, d;

  void size() {
    a.resize(std::size_t{rows} * 32 * steps);
    b.resize(std::size_t{columns} * 32 * steps);
    c.resize(std::size_t{rows} * columns);
    d.resize(std::size_t{rows} * columns);
    a_scale.resize(std::size_t{scaled} * rows * steps);
    b_scale.resize(std::size_t{scaled} * columns * steps);
  }
};

namespace detail {
template <class T>
bool put(std::FILE* f, const std::vector<T>& x) {
  return x.empty() || std::fwrite(x.data(), sizeof(T), x.size(), f) == x.size();
}
template <class T>
bool get(std::FILE* f, std::vector<T>& x) {
  return x.empty() || std::fread(x.data(), sizeof(T), x.size(), f) == x.size();
}
}  // namespace detail

inline bool write(const char* path, const std::vector<product>& all) {
  std::FILE* f = std::fopen(path, "wb");
  if (f == nullptr) return false;
  bool good = detail::put(f, std::vector<std::uint32_t>{static_cast<std::uint32_t>(all.size())});
  for (const product& p : all)
    good = good && detail::put(f, std::vector<std::uint32_t>{p.rows, p.columns, p.steps, p.scaled}) &&
           detail::put(f, p.a) && detail::put(f, p.b) && detail::put(f, p.c) && detail::put(f, p.d) &&
           detail::put(f, p.a_scale) && detail::put(f, p.b_scale);
  return (std::fclose(f) == 0) && good;
}

enum class found { nothing, damaged, whole };

inline found read(const char* path, std::vector<product>& all) {
  std::FILE* f = std::fopen(path, "rb");
  if (f == nullptr) return found::nothing;
  std::vector<std::uint32_t> count(1), extents(4);
  bool good = detail::get(f, count) && count[0] <= 4096;
  if (good) all.resize(count[0]);
  for (product& p : all) {
    good = good && detail::get(f, extents) && extents[0] <= 128 && extents[1] <= 256 && extents[2] <= 64 &&
           extents[3] <= 1;
    if (!good) break;
    p.rows = extents[0];
    p.columns = extents[1];
    p.steps = extents[2];
    p.scaled = extents[3];
    p.size();
    good = detail::get(f, p.a) && detail::get(f, p.b) && detail::get(f, p.c) && detail::get(f, p.d) &&
           detail::get(f, p.a_scale) && detail::get(f, p.b_scale);
  }
  good = good && std::fgetc(f) == EOF;
  std::fclose(f);
  return good ? found::whole : found::damaged;
}

}  // namespace golden
