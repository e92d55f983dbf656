// SPDX-License-Identifier: Apache-2.0
// The Hopper quantise kernel, on the simulated device, against the library's own quantiser: every byte of its images,
// scales, folds and masks, and that it writes nothing else.
#include <octavo/backends/cuda/hopper/quantise.hpp>
#include <octavo/backends/sim/runtime.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace octavo;
using namespace octavo::backends;

namespace {

constexpr std::uint8_t poison = 0xcd;

template <class T>
std::vector<T> poisoned(std::int64_t count) {
  std::vector<T> v(static_cast<std::size_t>(count));
  std::memset(static_cast<void*>(v.data()), poison, v.size() * sizeof(T));
  return v;
}
template <class T>
bool is_poison(T x) {
  const std::vector<T> untouched = poisoned<T>(1);
  return std::memcmp(&x, untouched.data(), sizeof(T)) == 0;
}

/// How the rows of a tensor lie in memory.
enum class layout {
  tokens_first,
  heads_first,
  odd,  ///< rows an odd number of elements apart, from an odd one on: no wide loads
};

struct test_setup {
  documents docs;
  std::int64_t heads = 2;
  dtype type = dtype::bf16;
  layout order = layout::tokens_first;
  bool shifted = false;
  int extra = 0;
  bool finite = false;  ///< no infinities and NaNs among the inputs
  std::uint64_t seed = 0;
};

/// A tensor and its memory, which starts with one element of padding.
struct tensor_in_memory {
  std::vector<std::uint8_t> bytes;
  tensor view;

  tensor_in_memory(const test_setup& s, std::int64_t d, dtype type, layout order) {
    const std::int64_t rows = s.docs.rows() * s.heads, pitch = order == layout::odd ? d + 3 : d;
    const std::int64_t length = s.docs.packed ? s.docs.total : s.docs.length;
    bytes = poisoned<std::uint8_t>((rows * pitch + 16) * bytes_of(type));
    const std::size_t first = order == layout::odd ? static_cast<std::size_t>(bytes_of(type)) : 0;
    view = contiguous(static_cast<void*>(bytes.data() + first), type, length, s.heads, pitch);
    if (order == layout::heads_first) view.stride_s = d, view.stride_h = length * d;
  }
};

template <class Recipe, class E, int D, hopper::token_order order>
class case_of_kernel {
 public:
  using kernel = hopper::quantise_kernel<Recipe, E, D, order>;

  explicit case_of_kernel(const test_setup& setup)
      : s(setup),
        at{s.docs, s.heads, D},
        slots(s.docs.slots(128)),
        x(s, D, s.type, s.order),
        payload(s, D, dtype_of<E>::value, s.order == layout::heads_first ? layout::tokens_first : s.order),
        scales(poisoned<std::uint8_t>(at.rowwise_count())),
        kept(s, D, dtype_of<E>::value, s.order),
        kept_scales(scales) {
    fill();
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < (s.docs.count + 1) * s.heads * D; ++i) shift.push_back(normal(random));
    quantized out;
    out.rowwise = payload.view;
    out.rowwise_scale = scales.data();
    const quantiser<Recipe, E> reference{x.view, s.shifted ? shift.data() : nullptr, out, at};
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t) { reference.tile(t, h); });
  }

  /// From x: everything is wanted.
  void check_quantised() {
    kernel k = with_outputs();
    k.x = x.view;
    k.shift = s.shifted ? shift.data() : nullptr;
    k.made.rowwise = kept.view;
    k.made.rowwise_scale = kept_scales.data();
    sim::launch(k, {.seed = s.seed});
    check_outputs();
    CHECK(kept_scales == scales);
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t) {
      for (int i = 0; i < t.tokens; ++i) {
        std::uint8_t* row = row_of(payload, t, i, h);
        std::memset(row_of(kept, t, i, h), poison, std::memcmp(row_of(kept, t, i, h), row, D) == 0 ? D : 0);
      }
    });
    CHECK(kept.bytes == poisoned<std::uint8_t>(static_cast<std::int64_t>(kept.bytes.size())));
  }
  /// From the payload, of which some tokens are changed to what no quantiser makes.
  void check_given() {
    std::mt19937 random(11);
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t) {
      for (int i = 0; i < t.tokens; ++i) {
        std::uint8_t* row = row_of(payload, t, i, h);
        if (random() % 8 == 0) std::memset(row, random() % 2 == 0 ? 0 : 0x80, D);
        if (random() % 8 == 0) row[random() % D] = random() % 2 == 0 ? 0xff : 0x7f;
        if (random() % 4 == 0) scale_of(t, i, h) = static_cast<std::uint8_t>(random() % 3 == 0 ? 0xff : random() % 256);
        if (random() % 4 == 0) scale_of(t, i, h) = 127;
      }
    });
    kernel k = with_outputs();
    k.given.rowwise = payload.view;
    k.given.rowwise_scale = scales.data();
    sim::launch(k, {.seed = s.seed});
    check_outputs();
  }
  /// Nothing is wanted but the column image.
  void check_columns_alone() {
    kernel k = with_outputs();
    k.x = x.view;
    k.shift = s.shifted ? shift.data() : nullptr;
    k.images.rows = nullptr, k.images.nonfinite = nullptr, k.scale = nullptr, k.fold = nullptr;
    sim::launch(k);
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t index) { check_columns(t, h, index); });
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
  /// Magnitudes over a wide range from token to token; some tokens are zero, some hold what is not finite.
  void fill() {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const float infinity = std::numeric_limits<float>::infinity();
    for (std::int64_t row = 0; row < s.docs.rows() * s.heads; ++row) {
      const std::int64_t token = row / s.heads, h = row % s.heads;
      const bool f16 = s.type == dtype::f16;
      float values[D];
      const int kind = static_cast<int>(random() % 16);
      const int range = s.finite ? 6 : f16 ? 14 : random() % 64 == 0 ? 140 : 10;
      const float size =
          std::exp2(static_cast<float>(static_cast<int>(random() % (2u * static_cast<unsigned>(range))) - range));
      for (float& v : values) v = kind == 0 ? 0.0f : kind == 1 ? -0.0f : normal(random) * std::fmin(size, 0x1p120f);
      const float strange[] = {infinity, -infinity, std::nanf(""), -std::nanf("")};
      if (!s.finite && random() % 12 == 0) values[random() % D] = strange[random() % 4];
      if (!s.finite && random() % 64 == 0) std::fill(values, values + D, strange[random() % 4]);
      const std::int64_t first =
          s.docs.packed ? token * x.view.stride_s
                        : token / s.docs.length * x.view.stride_b + token % s.docs.length * x.view.stride_s;
      write_elements(x.view, first + h * x.view.stride_h, D, values);
    }
  }

  kernel with_outputs() {
    rows = poisoned<std::uint8_t>(s.heads * slots * hopper::tile_images::row_bytes(D) + 16);
    columns = poisoned<std::uint8_t>(s.heads * slots * hopper::tile_images::column_bytes(D, s.extra) + 16);
    nonfinite = poisoned<std::uint32_t>(s.heads * slots * 4);
    scale = fold = poisoned<float>(s.heads * slots * 128);
    kernel k{};
    k.at = at;
    k.images = {aligned(rows), aligned(columns), nonfinite.data()};
    k.extra = s.extra;
    k.scale = scale.data();
    k.fold = fold.data();
    return k;
  }
  static std::uint8_t* aligned(std::vector<std::uint8_t>& v) {
    return v.data() + (16 - reinterpret_cast<std::uintptr_t>(v.data()) % 16) % 16;
  }
  std::uint8_t* row_of(const tensor_in_memory& t, const token_tile& tile, int i, std::int64_t h) const {
    return static_cast<std::uint8_t*>(t.view.data) + element_offset(t.view, s.docs, tile.document, tile.first + i, h);
  }
  std::uint8_t& scale_of(const token_tile& t, int i, std::int64_t h) {
    const std::int64_t token = t.first + i;
    return scales[static_cast<std::size_t>(at.rowwise_first(t.document, h) +
                                           (kernel::per_token ? token : token / 128))];
  }
  static bool is_nonfinite(std::uint8_t byte) { return (byte & 0x7f) > E::max_code; }
  /// Of a payload that is given: its tokens are NaN, under a scale of 1.
  bool has_nan_scale(const token_tile& t, int i, std::int64_t h) { return scale_of(t, i, h) == 0xff; }
  /// Whether the kernel may mark the token for being near one, of its warp's 16, whose numbers are so large that products
  /// of two may overflow.
  bool stands_by_large(const token_tile& t, int i, std::int64_t h) {
    bool large = false;
    for (int near = i / 16 * 16; near < t.tokens && near < i / 16 * 16 + 16; ++near)
      large = large || (!has_nan_scale(t, near, h) && scale_of(t, near, h) > 127 + 50);
    return large;
  }
  std::uint8_t expected_byte(const token_tile& t, int i, std::int64_t h, int c) {
    return has_nan_scale(t, i, h) ? 0x7f : row_of(payload, t, i, h)[c];
  }
  bool is_nonfinite(const token_tile& t, int i, std::int64_t h) {
    if (has_nan_scale(t, i, h)) return true;
    const std::uint8_t* row = row_of(payload, t, i, h);
    return std::any_of(row, row + D, [](std::uint8_t byte) { return is_nonfinite(byte); });
  }

  void check_columns(const token_tile& t, std::int64_t h, std::int64_t index) {
    const int height = D + s.extra;
    const std::uint8_t* image = aligned(columns) + index * hopper::tile_images::column_bytes(D, s.extra);
    int wrong = 0;
    for (int slot = 0; slot < 128; ++slot) {
      const int token = hopper::token_of_slot<order>(slot);
      for (int c = 0; c < height; ++c) {
        const std::uint8_t byte = token < t.tokens && c < D ? expected_byte(t, token, h, c) : 0;
        const std::uint8_t got = image[hopper::column_image_at(slot, c, height)];
        // What is not finite is -0, which in such a token no zero is.
        const bool marks = token < t.tokens && is_nonfinite(t, token, h);
        const std::uint8_t expected = c >= D ? E::nearest_even(1).bits : is_nonfinite(byte) ? 0x80 : byte;
        wrong += got != expected && !(byte == 0x80 && got == 0);
        wrong += marks && byte == 0x80 && got == 0x80;
      }
    }
    CHECK(wrong == 0);
  }
  void check_rows(const token_tile& t, std::int64_t h, std::int64_t index) {
    const std::uint8_t* image = aligned(rows) + index * hopper::tile_images::row_bytes(D);
    int wrong = 0;
    for (int i = 0; i < 128; ++i)
      for (int c = 0; c < D; ++c)
        wrong += image[hopper::row_image_at(i, c)] != (i < t.tokens ? expected_byte(t, i, h, c) : 0);
    CHECK(wrong == 0);
  }
  void check_factors(const token_tile& t, std::int64_t h, std::int64_t index) {
    int wrong = 0;
    const auto same = [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; };
    const payload_plane plane{.rowwise = row_of(payload, {t.document, 0, 1}, 0, h),
                              .rowwise_stride = payload.view.stride_s,
                              .columnwise = row_of(payload, {t.document, 0, 1}, 0, h),
                              .columnwise_stride = payload.view.stride_s,
                              .scales = scales.data() + at.rowwise_first(t.document, h)};
    for (int i = 0; i < 128; ++i) {
      const std::size_t word = static_cast<std::size_t>(index * 4 + i / 32);
      const bool marked = (nonfinite[word] >> i % 32 & 1) != 0, large = i < t.tokens && stands_by_large(t, i, h);
      wrong += !(large && marked) && marked != (i < t.tokens && is_nonfinite(t, i, h));
      if constexpr (kernel::per_token) {
        const std::size_t at_token = static_cast<std::size_t>(index * 128 + i);
        const bool absent = i >= t.tokens;
        wrong +=
            !same(scale[at_token], absent || has_nan_scale(t, i, h) ? 1.0f : token_scale<Recipe>(plane, t.first + i));
        wrong += fold[at_token] != static_cast<float>(absent                   ? fold_of_zero
                                                      : has_nan_scale(t, i, h) ? 0
                                                                               : fold_exponent(plane, t.first + i, D));
      }
    }
    if constexpr (!kernel::per_token)
      for (int copy = 0; copy < 4; ++copy)
        wrong += !same(scale[static_cast<std::size_t>(index * 4 + copy)],
                       has_nan_scale(t, 0, h) ? 1.0f : token_scale<Recipe>(plane, t.first));
    CHECK(wrong == 0);
  }
  /// That what belongs to a tile is right and all else as it was.
  void check_outputs() {
    std::vector<bool> written(static_cast<std::size_t>(s.heads * slots));
    for_tiles([&](const token_tile& t, std::int64_t h, std::int64_t index) {
      written[static_cast<std::size_t>(index)] = true;
      check_rows(t, h, index);
      check_columns(t, h, index);
      check_factors(t, h, index);
    });
    const auto untouched = [&](const auto& all, const auto* first, std::int64_t per_tile) {
      std::int64_t wrong = 0, i = 0;
      for (const auto* p = first; p != all.data() + all.size(); ++p, ++i)
        wrong +=
            (i >= per_tile * s.heads * slots || !written[static_cast<std::size_t>(i / per_tile)]) && !is_poison(*p);
      return wrong;
    };
    CHECK(untouched(rows, aligned(rows), hopper::tile_images::row_bytes(D)) == 0);
    CHECK(untouched(columns, aligned(columns), hopper::tile_images::column_bytes(D, s.extra)) == 0);
    CHECK(untouched(nonfinite, nonfinite.data(), 4) == 0);
    CHECK(untouched(scale, scale.data(), hopper::scales_per_tile<Recipe>) == 0);
    if constexpr (kernel::per_token)
      CHECK(untouched(fold, fold.data(), 128) == 0);
    else
      CHECK(std::all_of(fold.begin(), fold.end(), [](float f) { return is_poison(f); }));
  }

  const test_setup s;
  const scale_layout<Recipe> at;
  const std::int64_t slots;
  tensor_in_memory x, payload;
  std::vector<std::uint8_t> scales;
  tensor_in_memory kept;
  std::vector<std::uint8_t> kept_scales, rows, columns;
  std::vector<std::uint32_t> nonfinite;
  std::vector<float> scale, fold, shift;
};

using hopper::token_order;
const std::int32_t offsets_of_documents[] = {0, 0, 5, 133, 400, 400, 529};

/// Six documents, two of them empty, and a tail of 31 tokens.
documents packed() { return {6, 0, 560, true, octavo::offsets_of(offsets_of_documents)}; }
documents batches(std::int64_t count, std::int64_t length) { return {.count = count, .length = length}; }

template <class Recipe, int D, token_order order>
using e4m3_case = case_of_kernel<Recipe, e4m3, D, order>;

template <class Recipe, int D, token_order order>
void check_all_layouts() {
  for (const dtype type : {dtype::bf16, dtype::f16, dtype::f32})
    for (const layout rows : {layout::tokens_first, layout::heads_first, layout::odd})
      for (const bool shifted : {false, true}) {
        CAPTURE(type);
        CAPTURE(rows);
        CAPTURE(shifted);
        test_setup s{.docs = batches(2, 150), .type = type, .order = rows, .shifted = shifted};
        e4m3_case<Recipe, D, order>(s).check_quantised();
      }
}

template <class Recipe, int D, token_order order>
void check_documents() {
  for (const bool shifted : {false, true})
    for (const documents& docs : {packed(), batches(1, 128), batches(3, 1), batches(1, 257)}) {
      CAPTURE(docs.length);
      CAPTURE(shifted);
      test_setup s{.docs = docs, .heads = 3, .shifted = shifted, .extra = hopper::ones_rows, .seed = 1};
      e4m3_case<Recipe, D, order>(s).check_quantised();
      e4m3_case<Recipe, D, order>(s).check_given();
      e4m3_case<Recipe, D, order>(s).check_columns_alone();
      s.order = layout::odd;
      e4m3_case<Recipe, D, order>(s).check_given();
    }
}

}  // namespace

TEST_CASE_TEMPLATE("the Hopper quantise kernel's scales are those of e8m0::for_amax", E, e4m3, e5m2) {
  int wrong = 0;
  const auto check = [&](std::uint32_t amax) {
    const e8m0 expected = e8m0::for_amax(std::bit_cast<float>(amax), E::max), scale = hopper::scale_for<E>(amax);
    wrong += scale.bits != expected.bits || hopper::reciprocal_of(scale) != expected.reciprocal();
  };
  for (std::uint32_t amax = 0; amax < octavo::detail::float_exponent_mask; amax += 1021) check(amax);
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent)
    for (const std::uint32_t mantissa : {0x000000u, 0x000001u, 0x5fffffu, 0x600000u, 0x600001u, 0x7fffffu})
      check(exponent << 23 | mantissa);
  CHECK(wrong == 0);
}

TEST_CASE("the Hopper quantise kernel makes what the quantiser makes, of all types, strides and alignments") {
  check_all_layouts<recipe::tile, 128, token_order::registers>();
  check_all_layouts<recipe::tile, 64, token_order::paired_rows>();
  check_all_layouts<recipe::token, 128, token_order::paired_rows>();
  check_all_layouts<recipe::token, 64, token_order::registers>();
}

TEST_CASE("the Hopper quantise kernel takes batches, packed documents and payloads, and leaves the tail alone") {
  check_documents<recipe::tile, 128, token_order::paired_rows>();
  check_documents<recipe::tile, 64, token_order::registers>();
  check_documents<recipe::token, 128, token_order::registers>();
  check_documents<recipe::token, 64, token_order::paired_rows>();
}

TEST_CASE("the Hopper quantise kernel makes E5M2") {
  test_setup s{.docs = batches(1, 140), .finite = true};
  case_of_kernel<recipe::e5m2_gradients<recipe::token>, e5m2, 64, token_order::paired_rows>(s).check_quantised();
  case_of_kernel<recipe::e5m2_gradients<recipe::tile>, e5m2, 128, token_order::registers>(s).check_quantised();
}
