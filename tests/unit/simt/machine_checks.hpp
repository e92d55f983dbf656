// SPDX-License-Identifier: Apache-2.0
// What every machine of the lane-level kernels is tested for on its model: where the matrix instruction has its elements,
// by operands of a single element; that rounded accumulators meet column images as they lie; and the quantise kernel,
// byte by byte against the library's own quantiser.
#pragma once

#include <octavo/backends/sim/runtime.hpp>
#include <octavo/backends/simt/products.hpp>
#include <octavo/backends/simt/quantise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace simt_test {

using namespace octavo;
using namespace octavo::backends;

/// A kernel of one warp made from a function.
template <class M, int bytes, class Function>
struct warp_kernel {
  using machine = M;
  static constexpr int threads = M::lanes, shared_bytes = bytes;
  Function function;
  std::int64_t blocks() const { return 1; }
  void operator()() const { function(); }
};
template <class M, int bytes, class Function>
void run_warp(Function function, sim::options how = {}) {
  sim::launch(warp_kernel<M, bytes, Function>{function}, how);
}

/// What a kernel is stopped with; empty where nothing is found.
template <class M, int bytes, class Function>
std::string fault_of(Function function) {
  try {
    run_warp<M, bytes>(function);
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "";
}

/// An operand byte of a number that E represents.
template <class M, class E>
std::uint8_t operand_byte(float x) {
  return static_cast<std::uint8_t>(M::template operand_bytes<E>(E::nearest_even(x).bits));
}

/// For each position k of the contraction: L has numbers in element k alone, row r having 1 + r / 8, and R has
/// 1 + c / 4 % 4 / 4 in element k of column c and 32 in the one after. Every sum tells its row and its column, and no other
/// k takes part.
template <class M, class L, class R>
void check_products(sim::accumulation how) {
  using A = typename M::template atom<L, R>;
  using at = simt::image_layout<M>;
  int wrong = 0;
  for (int k = 0; k < A::depth; ++k) {
    std::vector<std::uint8_t> operands(2 * at::block_bytes, operand_byte<M, L>(0));
    for (int i = 0; i < A::size; ++i) {
      operands[at::byte_at(i, k)] = operand_byte<M, L>(1 + static_cast<float>(i / 8));
      operands[at::block_bytes + at::byte_at(i, k)] = operand_byte<M, R>(1 + static_cast<float>(i / 4 % 4) / 4);
      operands[at::block_bytes + at::byte_at(i, (k + 1) % A::depth)] = operand_byte<M, R>(32);
    }
    std::vector<float> sums(A::size * A::size);
    run_warp<M, 2 * at::block_bytes>(
        [&] {
          char* const shared = M::shared();
          const int lane = M::thread_index();
          if (lane == 0) std::memcpy(shared, operands.data(), operands.size());
          M::sync_block();
          const auto* image = reinterpret_cast<const std::uint8_t*>(shared);
          simt::lane_operand<M, false> l, r;
          simt::load_block(image, 0, lane, l);
          simt::load_block(image, 1, lane, r);
          float d[A::sums] = {};
          simt::multiply<A>(d, l, r);
          for (int i = 0; i < A::sums; ++i)
            sums[static_cast<std::size_t>(A::sum_row(lane, i) * A::size + A::sum_column(lane, i))] = d[i] * A::unit;
        },
        {.accumulator = how});
    for (int r = 0; r < A::size; ++r)
      for (int c = 0; c < A::size; ++c)
        wrong += sums[static_cast<std::size_t>(r * A::size + c)] !=
                 (1 + static_cast<float>(r / 8)) * (1 + static_cast<float>(c / 4 % 4) / 4);
  }
  CHECK(wrong == 0);
}

/// Single elements: sum (r, c) is 1 where L has row r alone and R has column c alone.
template <class M>
void check_rows_and_columns() {
  using A = typename M::template atom<e4m3, e4m3>;
  using at = simt::image_layout<M>;
  int wrong = 0;
  for (int r = 0; r < A::size; ++r) {
    const int c = (5 * r + 3) % A::size;
    run_warp<M, 2 * at::block_bytes>([&] {
      char* const shared = M::shared();
      const int lane = M::thread_index();
      if (lane == 0) {
        std::memset(shared, operand_byte<M, e4m3>(0), 2 * at::block_bytes);
        shared[at::byte_at(r, 7)] = static_cast<char>(operand_byte<M, e4m3>(1));
        shared[at::block_bytes + at::byte_at(c, 7)] = static_cast<char>(operand_byte<M, e4m3>(1));
      }
      M::sync_block();
      const auto* image = reinterpret_cast<const std::uint8_t*>(shared);
      simt::lane_operand<M, false> left, right;
      simt::load_block(image, 0, lane, left);
      simt::load_block(image, 1, lane, right);
      float d[A::sums] = {};
      simt::multiply<A>(d, left, right);
      for (int i = 0; i < A::sums; ++i)
        wrong += d[i] * A::unit != (A::sum_row(lane, i) == r && A::sum_column(lane, i) == c ? 1.0f : 0.0f);
    });
  }
  CHECK(wrong == 0);
}

/// P V, with P given as accumulators and V as a column image: sums of small whole numbers.
template <class M>
void check_chain() {
  using A = typename M::template atom<e4m3, e4m3>;
  using at = simt::image_layout<M>;
  constexpr int tokens = 128, channels = 64;
  using shape = simt::sums_of<M, 2, tokens>;
  const auto p = [](int row, int token) { return static_cast<float>((row * 7 + token * 5) % 8); };
  const auto v = [](int token, int channel) { return static_cast<float>((token * 3 + channel * 11) % 7 - 3); };
  std::vector<std::uint8_t> image(tokens * channels);
  for (int slot = 0; slot < tokens; ++slot)
    for (int c = 0; c < channels; ++c) {
      const int token = slot / A::depth * A::depth + at::token_of_slot(slot % A::depth);
      image[static_cast<std::size_t>((slot / A::depth * (channels / A::size) + c / A::size) * at::block_bytes +
                                     at::byte_at(c % A::size, slot % A::depth))] = operand_byte<M, e4m3>(v(token, c));
    }
  int wrong = 0;
  run_warp<M, tokens * channels>([&] {
    char* const shared = M::shared();
    if (M::thread_index() == 0) std::memcpy(shared, image.data(), image.size());
    M::sync_block();
    const auto place = simt::lane_place<M, 2>::here();
    float x[shape::elements];
    for (int i = 0; i < shape::elements; ++i) x[i] = p(place.row(shape::row(i)), place.column + shape::column(i));
    simt::packed_rows<M, 2, tokens, false> packed;
    packed.template pack<e4m3>(x);
    simt::multiply_columns<A, channels, channels>(packed, reinterpret_cast<const std::uint8_t*>(shared), 0, place.lane,
                                                  [&](const float(&part)[2 * A::sums], int block) {
                                                    using output = simt::sums_of<M, 2, A::size>;
                                                    for (int i = 0; i < 2 * A::sums; ++i) {
                                                      float sum = 0;
                                                      for (int t = 0; t < tokens; ++t)
                                                        sum += p(place.row(output::row(i)), t) *
                                                               v(t, block * A::size + place.column + output::column(i));
                                                      wrong += part[i] * A::unit != sum;
                                                    }
                                                  });
  });
  CHECK(wrong == 0);
}

/// Documents of 0, 5, 128, 267 and 0 tokens, 129 more and a tail of 31; two heads; numbers of all sizes, zeros and, if
/// `strange`, what is not finite.
struct tensor_to_quantise {
  static constexpr std::int64_t heads = 2;
  static constexpr std::int32_t cu[] = {0, 0, 5, 133, 400, 400, 529};
  documents docs{6, 0, 560, true, offsets_of(cu)};
  std::vector<std::uint32_t> memory;
  std::vector<float> shift;  ///< of every document and head
  bool shifted;
  tensor x;

  tensor_to_quantise(dtype type, int d, bool subtracts, bool strange, std::uint64_t seed)
      : memory(static_cast<std::size_t>(560 * heads * d + 1)),
        shift(static_cast<std::size_t>(6 * heads * d)),
        shifted(subtracts),
        x(contiguous(static_cast<void*>(memory.data()), type, docs.total, heads, d)) {
    std::mt19937 random(static_cast<unsigned>(seed) + 3);
    std::normal_distribution<float> normal;
    for (float& s : shift) s = normal(random);
    for (std::int64_t row = 0; row < docs.rows() * heads; ++row) {
      std::vector<float> values(static_cast<std::size_t>(d));
      const float size = std::exp2(static_cast<float>(static_cast<int>(random() % 20) - 10));
      for (float& value : values) value = row % 16 == 5 ? 0.0f : normal(random) * size;
      // Around what is subtracted, as keys are around their mean: an absent token is not one of those.
      const std::int64_t token = row / heads, document = std::upper_bound(cu, cu + 7, token) - cu - 1;
      const std::size_t first = static_cast<std::size_t>((document * heads + row % heads) * d);
      if (shifted && document < docs.count)
        for (std::size_t c = 0; c < values.size(); ++c) values[c] += shift[first + c];
      if (strange && random() % 12 == 0)
        values[random() % values.size()] = random() % 2 == 0 ? std::numeric_limits<float>::infinity() : std::nanf("");
      write_elements(x, row * d, d, values.data());
    }
  }
  const float* subtracted() const { return shifted ? shift.data() : nullptr; }
};

/// Every byte of payload, scales, folds, marks and both images.
template <class M, class Recipe, class E, int D>
void check_quantise(dtype type, int d, bool shifted, std::uint64_t seed) {
  const tensor_to_quantise given(type, d, shifted, std::is_same_v<E, e4m3>, seed);
  const documents& docs = given.docs;
  constexpr std::int64_t heads = tensor_to_quantise::heads;
  const scale_layout<Recipe> at{docs, heads, d};
  const std::int64_t slots = docs.slots(128), tiles = slots * heads, elements = docs.rows() * heads * d;
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };

  std::vector<std::uint8_t> payload(count(elements), 0), scales(count(at.rowwise_count()), 0), kept(payload),
      kept_scales(scales);
  quantized out;
  out.rowwise = contiguous(static_cast<void*>(payload.data()), dtype_of<E>::value, docs.total, heads, d);
  out.rowwise_scale = scales.data();
  const quantiser<Recipe, E> reference{given.x, given.subtracted(), out, at};

  std::vector<std::uint64_t> images(count(2 * tiles * 128 * D / 8 + 8));  // aligned to 8; moved to 16 below
  auto* base = reinterpret_cast<std::uint8_t*>(images.data());
  base += (16 - reinterpret_cast<std::uintptr_t>(base) % 16) % 16;
  std::vector<std::uint32_t> nonfinite(count(tiles * 4)), channels(count(tiles * 128 * (D / 32)));
  std::vector<float> scale(count(tiles * 128)), fold(scale);
  simt::quantise_kernel<M, Recipe, E, D> kernel{};
  kernel.at = at;
  kernel.x = given.x;
  kernel.shift = given.subtracted();
  kernel.made.rowwise = contiguous(static_cast<void*>(kept.data()), dtype_of<E>::value, docs.total, heads, d);
  kernel.made.rowwise_scale = kept_scales.data();
  kernel.images.rows = base;
  kernel.images.columns = base + tiles * 128 * D;
  kernel.images.nonfinite = nonfinite.data();
  kernel.images.nonfinite_channels = channels.data();
  kernel.scale = scale.data();
  kernel.fold = fold.data();
  sim::launch(kernel, {.seed = seed});

  using A = typename M::template atom<e4m3, e4m3>;
  using layout = simt::image_layout<M>;
  int wrong = 0, marked = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const token_tile tile = docs.tile_at(slot, 128);
    if (tile.tokens == 0 || docs.is_tail(tile.document)) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      reference.tile(tile, h);
      const std::int64_t index = h * slots + slot;
      const payload_plane plane = plane_of<Recipe>(out, at, tile.document, h);
      const std::uint8_t* rows = kernel.images.rows + index * 128 * D;
      const std::uint8_t* columns = kernel.images.columns + index * 128 * D;
      for (int i = 0; i < 128; ++i) {
        const bool exists = i < tile.tokens;
        const bool mark = (nonfinite[count(index * 4 + i / 32)] >> i % 32 & 1) != 0;
        bool any = false;
        for (int c = 0; c < D; ++c) {
          const std::uint8_t byte =
              exists && c < d ? plane.rowwise[(tile.first + i) * plane.rowwise_stride + c] : std::uint8_t{0};
          const bool strange = (byte & 0x7f) > E::max_code;
          any = any || strange;
          const auto operand = static_cast<std::uint8_t>(M::template operand_bytes<E>(byte));
          const auto at_row = (i / A::size * (D / A::depth) + c / A::depth) * layout::block_bytes +
                              layout::byte_at(i % A::size, c % A::depth);
          wrong += rows[at_row] != operand;
          int token_slot = 0;
          while (layout::token_of_slot(token_slot) != i % A::depth) ++token_slot;
          const auto at_column = (i / A::depth * (D / A::size) + c / A::size) * layout::block_bytes +
                                 layout::byte_at(c % A::size, token_slot);
          wrong += columns[at_column] != (strange ? 0 : operand);
          if (mark) wrong += ((channels[count((index * 128 + i) * (D / 32) + c / 32)] >> c % 32 & 1) != 0) != strange;
        }
        wrong += mark != any;
        marked += mark;
        if constexpr (kernel.per_token) {
          const float expected = exists ? token_scale<Recipe>(plane, tile.first + i) : 1.0f;
          wrong += scale[count(index * 128 + i)] != expected;
          wrong += fold[count(index * 128 + i)] !=
                   static_cast<float>(exists ? fold_exponent(plane, tile.first + i, d) : fold_of_zero);
        } else if (i < 4) {
          wrong += scale[count(index * 4 + i)] != token_scale<Recipe>(plane, tile.first);
        }
      }
    }
  }
  CHECK(wrong == 0);
  CHECK((marked > 10) == std::is_same_v<E, e4m3>);
  // FNUZ knows no negative zero: a machine that computes with it keeps none.
  if (static_cast<std::uint8_t>(M::template operand_bytes<E>(0x80)) == 0)
    std::replace(payload.begin(), payload.end(), std::uint8_t{0x80}, std::uint8_t{0});
  CHECK(kept == payload);
  CHECK(kept_scales == scales);
}

}  // namespace simt_test
