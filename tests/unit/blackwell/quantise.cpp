// SPDX-License-Identifier: Apache-2.0
// The Blackwell quantise kernel, on the simulated device, against the library's own quantiser: every byte of its images,
// scales and marks, of the payloads and scales it keeps, and that it writes nothing else.
#include <octavo/backends/cuda/blackwell/quantise.hpp>
#include <octavo/backends/sim/runtime.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace octavo;
using namespace octavo::backends;

namespace {

constexpr std::uint8_t poison = 0xcd;
using bytes = std::vector<std::uint8_t>;
using recipe::mx32;

bytes poisoned(std::int64_t count) { return bytes(static_cast<std::size_t>(count), poison); }

struct test_setup {
  documents docs;
  std::int64_t heads = 2;
  dtype type = dtype::bf16;
  int gap = 0;  ///< elements between rows; an odd one leaves no aligned loads
  bool shifted = false;
  bool finite = true;
  std::uint64_t seed = 0;
};

/// A tensor [tokens, heads, d] behind an odd number of bytes if rows have gaps.
struct tensor_in_memory {
  bytes memory;
  tensor view;

  tensor_in_memory(const test_setup& s, std::int64_t d, dtype type) {
    const std::int64_t size = bytes_of(type), pitch = d + s.gap, tokens = s.docs.rows();
    memory = poisoned((tokens * s.heads * pitch + 1) * size + 64);
    view.data = memory.data() + (s.gap != 0 ? size : 0);
    view.type = type;
    view.stride_h = pitch, view.stride_s = s.heads * pitch;
    view.stride_b = s.docs.packed ? 0 : s.docs.length * view.stride_s;
  }
};

/// Payloads and scales as the library keeps them.
struct payload_in_memory {
  tensor_in_memory rows, columns;
  bytes row_scales, column_scales;

  payload_in_memory(const test_setup& s, const scale_layout<mx32>& at)
      : rows(s, at.d, dtype::e4m3),
        columns(s, at.d, dtype::e4m3),
        row_scales(poisoned(at.rowwise_count())),
        column_scales(poisoned(at.columnwise_count())) {}
  quantized view() {
    quantized q;
    q.rowwise = rows.view, q.columnwise = columns.view;
    q.rowwise_scale = row_scales.data(), q.columnwise_scale = column_scales.data();
    return q;
  }
  friend bool operator==(const payload_in_memory& a, const payload_in_memory& b) {
    return a.rows.memory == b.rows.memory && a.columns.memory == b.columns.memory && a.row_scales == b.row_scales &&
           a.column_scales == b.column_scales;
  }
};

template <int D>
struct case_of_kernel {
  using kernel = blackwell::quantise_kernel<mx32, e4m3, D>;

  explicit case_of_kernel(const test_setup& setup)
      : s(setup), at{s.docs, s.heads, D}, slots(s.docs.slots(128)), x(s, D, s.type), expected(s, at), kept(s, at) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t row = 0; row < s.docs.rows() * s.heads; ++row) {
      const std::int64_t token = row / s.heads, h = row % s.heads;
      float values[D];
      const float size = std::exp2(static_cast<float>(random() % 20) - 14);
      const unsigned kind = random() % 16;
      for (float& v : values) v = kind == 0 ? 0.0f : kind == 1 ? -0.0f : normal(random) * size;
      const float strange[] = {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                               std::nanf("")};
      if (!s.finite && random() % 12 == 0) values[random() % D] = strange[random() % 3];
      if (!s.finite && random() % 64 == 0) std::fill(values, values + D, strange[random() % 3]);
      if (!s.finite && s.type == dtype::f32 && random() % 40 == 0) values[random() % D] = 0x1p100f;
      const std::int64_t first =
          s.docs.packed ? token * x.view.stride_s
                        : token / s.docs.length * x.view.stride_b + token % s.docs.length * x.view.stride_s;
      write_elements(x.view, first + h * x.view.stride_h, D, values);
    }
    for (std::int64_t i = 0; i < (s.docs.count + 1) * s.heads * D; ++i) shift.push_back(normal(random));
    const quantiser<mx32, e4m3> reference{x.view, s.shifted ? shift.data() : nullptr, expected.view(), at};
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t) { reference.tile(t, h); });
  }

  void check_quantised() {
    kernel k = with_outputs();
    k.x = x.view;
    k.shift = s.shifted ? shift.data() : nullptr;
    k.made = kept.view();
    sim::launch(k, {.seed = s.seed});
    CHECK(kept == expected);
    check_outputs();
  }
  /// From payloads, of which some scales are NaN and some bytes what no quantiser makes.
  void check_given() {
    std::mt19937 random(11);
    for (bytes* scales : {&expected.row_scales, &expected.column_scales})
      for (std::uint8_t& scale : *scales)
        if (scale != poison && random() % 40 == 0) scale = random() % 2 == 0 ? 0xff : 127 + 60;
    kernel k = with_outputs();
    k.given = expected.view();
    sim::launch(k, {.seed = s.seed});
    check_outputs();
  }

 private:
  /// Every tile with a payload; index: as the kernel's outputs count them.
  template <class F>
  void for_tiles(F f) const {
    for (std::int64_t slot = 0; slot < slots; ++slot) {
      const token_tile t = s.docs.tile_at(slot, 128);
      if (t.tokens == 0 || s.docs.is_tail(t.document)) continue;
      for (std::int64_t h = 0; h < s.heads; ++h) f(t, h, h * slots + slot);
    }
  }
  kernel with_outputs() {
    const std::int64_t tiles = s.heads * slots;
    payloads = poisoned(2 * tiles * 128 * D + 16);
    scales = poisoned(2 * tiles * 512 + 16);
    marks.assign(static_cast<std::size_t>(tiles * 4), 0xcdcdcdcdu);
    kernel k{};
    k.at = at;
    const auto aligned = [](bytes& v) {
      return v.data() + (16 - reinterpret_cast<std::uintptr_t>(v.data()) % 16) % 16;
    };
    k.images = {aligned(payloads), aligned(scales), aligned(payloads) + tiles * 128 * D, aligned(scales) + tiles * 512,
                marks.data()};
    images = k.images;
    return k;
  }

  static bool is_nonfinite(std::uint8_t byte) { return (byte & 0x7f) == 0x7f; }

  /// What belongs to every tile, and that nothing else was written: what is right is poisoned again.
  void check_outputs() {
    int wrong = 0;
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t index) {
      const payload_plane plane = plane_of<mx32>(const_quantized(expected.view()), at, t.document, h);
      for (int i = 0; i < 128; ++i) check_token(t, i, plane, index, wrong);
      for (int r = 0; r < 128; ++r)
        for (int b = 0; b < 4; ++b) {
          const bool row_exists = r < t.tokens && b < D / 32, column_exists = r < D && 32 * b < t.tokens;
          std::uint8_t& row = images.row_scales[index * 512 + blackwell::scale_at(r, b)];
          std::uint8_t& column = images.column_scales[index * 512 + blackwell::scale_at(r, b)];
          const std::uint8_t of_row = row_exists ? plane.rowwise_blocks[(t.first + r) * (D / 32) + b] : row;
          const std::uint8_t of_column = column_exists ? plane.columnwise_blocks[(t.first / 32 + b) * D + r] : column;
          wrong += row != (of_row == 0xff ? 127 : of_row) || row == poison;
          wrong += column != (of_column == 0xff ? 127 : of_column) || column == poison;
          row = column = poison;
        }
    });
    CHECK(wrong == 0);
    const auto untouched = [](std::uint8_t b) { return b == poison; };
    CHECK(std::all_of(payloads.begin(), payloads.end(), untouched));
    CHECK(std::all_of(scales.begin(), scales.end(), untouched));
    CHECK(std::all_of(marks.begin(), marks.end(), [](std::uint32_t m) { return m == 0xcdcdcdcdu || m == 0; }));
  }
  void check_token(const token_tile& t, int i, const payload_plane& plane, std::int64_t index, int& wrong) {
    const bool exists = i < t.tokens;
    bool strange = false, large = false, marked = false;
    for (int near = i / 32 * 32; near < t.tokens && near < i / 32 * 32 + 32; ++near)
      for (int b = 0; b < D / 32; ++b) {
        const std::uint8_t scale = plane.rowwise_blocks[(t.first + near) * (D / 32) + b];
        large |= scale != 0xff && scale > 127 + 50;
      }
    std::uint8_t row[D] = {}, column[D] = {};
    for (int c = 0; exists && c < D; ++c) {
      const std::int64_t token = t.first + i;
      const bool nan_row = plane.rowwise_blocks[token * (D / 32) + c / 32] == 0xff;
      const bool nan_column = plane.columnwise_blocks[token / 32 * D + c] == 0xff;
      row[c] = nan_row ? 0x7f : plane.rowwise[token * plane.rowwise_stride + c];
      column[c] = nan_column ? 0x7f : plane.columnwise[token * plane.columnwise_stride + c];
      strange |= is_nonfinite(row[c]) || is_nonfinite(column[c]);
    }
    std::uint32_t& word = marks[static_cast<std::size_t>(index * 4 + i / 32)];
    marked = word != 0;
    const std::uint32_t bit = 1u << i % 32;
    wrong += ((word & bit) != 0) != (exists && (strange || large));
    for (int c = 0; c < D; ++c) {
      const std::int64_t at_byte = index * 128 * D + (c / 16 * 128 + i) * 16 + c % 16;
      std::uint8_t &of_row = images.rows[at_byte], &of_column = images.columns[at_byte];
      wrong += of_row != row[c];
      // What is not finite is -0, which among such tokens no zero is.
      wrong += of_column != (is_nonfinite(column[c]) ? 0x80 : marked && column[c] == 0x80 ? 0 : column[c]);
      of_row = of_column = poison;
    }
    if (i % 32 == 31) word = 0;
  }

  const test_setup s;
  const scale_layout<mx32> at;
  const std::int64_t slots;
  tensor_in_memory x;
  payload_in_memory expected, kept;
  std::vector<float> shift;
  bytes payloads, scales;
  std::vector<std::uint32_t> marks;
  blackwell::tile_images images;
};

const std::int32_t offsets_of_documents[] = {0, 0, 5, 133, 400, 400, 529};
/// Six documents, two of them empty, and a tail of 31 tokens.
documents packed() { return {6, 0, 560, true, octavo::offsets_of(offsets_of_documents)}; }
documents batches(std::int64_t count, std::int64_t length) { return {.count = count, .length = length}; }

template <int D>
void check_all() {
  for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32})
    for (const int gap : {0, 3})
      for (const bool shifted : {false, true}) {
        CAPTURE(type);
        CAPTURE(gap);
        case_of_kernel<D>({.docs = batches(2, 150), .type = type, .gap = gap, .shifted = shifted}).check_quantised();
        case_of_kernel<D>({.docs = batches(1, 257), .type = type, .gap = gap, .shifted = shifted, .finite = false})
            .check_quantised();
      }
  for (const documents& docs : {packed(), batches(3, 1), batches(1, 128)}) {
    case_of_kernel<D>({.docs = docs, .heads = 3, .shifted = true, .seed = 1}).check_quantised();
    case_of_kernel<D>({.docs = docs, .heads = 3, .finite = false, .seed = 1}).check_given();
    case_of_kernel<D>({.docs = docs, .heads = 3, .gap = 1, .finite = false}).check_given();
  }
}

}  // namespace

TEST_CASE("the Blackwell quantise kernel makes what the quantiser makes, of all types, strides and documents") {
  check_all<64>();
  check_all<128>();
}
