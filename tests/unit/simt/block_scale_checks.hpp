// SPDX-License-Identifier: Apache-2.0
// What a machine that computes mx32 is tested for on its model: that the scales in operand blocks reach the elements that
// they belong to, that accumulators are quantised in blocks of 32 tokens, and the quantise kernel, byte by byte against
// the library's own quantiser.
#pragma once

#include <octavo/backends/simt/quantise_blocks.hpp>

#include "unit/simt/machine_checks.hpp"

namespace simt_test {

/// A scale for tests: 2^-4 to 2^4.
inline e8m0 random_scale(std::mt19937& random) { return e8m0::from_exponent(static_cast<int>(random() % 9) - 4); }

/// The bytes of an operand block: number(row, k) with scale(row, block of 32). Lanes whose scale nothing reads have one, too.
template <class M, class Number, class Scale>
void fill_block(std::uint8_t* block, Number number, Scale scale) {
  using A = typename M::template atom<e4m3, e4m3>;
  using at = simt::image_layout<M>;
  for (int row = 0; row < A::size; ++row)
    for (int k = 0; k < A::depth; ++k) block[at::byte_at(row, k)] = operand_byte<M, e4m3>(number(row, k));
  for (int lane = 0; lane < M::lanes; ++lane)
    block[at::block_bytes + lane] = scale(A::scale_row(lane), A::scale_block(lane)).bits;
}

/// One product of two blocks of small whole numbers.
template <class M>
void check_block_scales() {
  using A = typename M::template atom<e4m3, e4m3>;
  constexpr int blocks = A::depth / mx_block, bytes = simt::operand_block_bytes<M, true>;
  std::mt19937 random(9);
  float x[2][A::size][A::depth];
  e8m0 scales[2][A::size][blocks];
  std::vector<std::uint8_t> operands(2 * bytes);
  for (int side = 0; side < 2; ++side) {
    for (auto& row : x[side])
      for (float& number : row) number = static_cast<float>(random() % 15) - 7;
    for (auto& row : scales[side])
      for (e8m0& scale : row) scale = random_scale(random);
    fill_block<M>(
        operands.data() + side * bytes, [&](int row, int k) { return x[side][row][k]; },
        [&](int row, int b) { return scales[side][row][b]; });
  }
  int wrong = 0;
  run_warp<M, 2 * bytes>([&] {
    const int lane = M::thread_index();
    if (lane == 0) std::memcpy(M::shared(), operands.data(), operands.size());
    M::sync_block();
    const auto* image = reinterpret_cast<const std::uint8_t*>(M::shared());
    simt::lane_operand<M, true> l, r;
    simt::load_block(image, 0, lane, l);
    simt::load_block(image, 1, lane, r);
    for (std::uint32_t* scale : {&l.scale, &r.scale})  // the lowest byte alone counts
      *scale |= static_cast<std::uint32_t>(random()) << 8;
    float d[A::sums] = {};
    simt::multiply<A>(d, l, r);
    for (int i = 0; i < A::sums; ++i) {
      const int row = A::sum_row(lane, i), column = A::sum_column(lane, i);
      float sum = 0;
      for (int k = 0; k < A::depth; ++k)
        sum += x[0][row][k] * x[1][column][k] * static_cast<float>(scales[0][row][k / mx_block]) *
               static_cast<float>(scales[1][column][k / mx_block]);
      wrong += d[i] != sum;
    }
  });
  CHECK(wrong == 0);
}

/// quant(P) V, with P given as accumulators of other sizes in each block of 32 tokens, one of them zeros, and V as a column
/// image with scales.
template <class M, class E>
void check_scaled_chain() {
  using A = typename M::template atom<E, e4m3>;
  using at = simt::image_layout<M>;
  constexpr int tokens = 128, channels = 64, row_tiles = 2, rows = row_tiles * A::size;
  constexpr int bytes = simt::image_bytes<M, true>(tokens, channels);
  using shape = simt::sums_of<M, row_tiles, tokens>;
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  float p[rows][tokens], v[tokens][channels];
  e8m0 v_scale[tokens / mx_block][channels];
  for (auto& row : p)
    for (int first = 0; first < tokens; first += mx_block) {
      const float size = std::exp2(static_cast<float>(random() % 40) - 20);
      const bool zero = random() % 8 == 0;
      for (int t = first; t < first + mx_block; ++t) row[t] = zero ? 0.0f : normal(random) * size;
    }
  for (auto& token : v)
    for (float& number : token) number = static_cast<float>(random() % 15) - 7;
  for (auto& block : v_scale)
    for (e8m0& scale : block) scale = random_scale(random);
  std::vector<std::uint8_t> image(bytes);
  for (int block = 0; block < tokens / A::depth * (channels / A::size); ++block) {
    const int first_token = block / (channels / A::size) * A::depth,
              first_channel = block % (channels / A::size) * A::size;
    fill_block<M>(
        image.data() + block * simt::operand_block_bytes<M, true>,
        [&](int row, int k) { return v[first_token + at::token_of_slot(k)][first_channel + row]; },
        [&](int row, int b) { return v_scale[first_token / mx_block + b][first_channel + row]; });
  }
  double quantised[rows][tokens];
  for (int row = 0; row < rows; ++row)
    for (int t = 0; t < tokens; ++t) {
      float amax = 0;
      for (int e = t / mx_block * mx_block; e < t / mx_block * mx_block + mx_block; ++e)
        amax = std::fmax(amax, std::fabs(p[row][e]));
      const auto scale = static_cast<float>(e8m0::for_amax(amax, E::max));
      quantised[row][t] = static_cast<double>(static_cast<float>(E::nearest_even(p[row][t] / scale)) * scale);
    }
  int wrong = 0;
  run_warp<M, bytes>([&] {
    char* const shared = M::shared();
    if (M::thread_index() == 0) std::memcpy(shared, image.data(), image.size());
    M::sync_block();
    const auto place = simt::lane_place<M, row_tiles>::here();
    float x[shape::elements], down[shape::rows];
    for (int i = 0; i < shape::elements; ++i) x[i] = p[place.row(shape::row(i))][place.column + shape::column(i)];
    simt::packed_rows<M, row_tiles, tokens, true> packed;
    packed.template pack_scaled<E>(x, down, place.lane);
    simt::multiply_columns<A, channels, channels>(
        packed, reinterpret_cast<const std::uint8_t*>(shared), 0, place.lane,
        [&](const float(&part)[row_tiles * A::sums], int block) {
          using output = simt::sums_of<M, row_tiles, A::size>;
          for (int i = 0; i < row_tiles * A::sums; ++i) {
            const int row = place.row(output::row(i)), c = block * A::size + place.column + output::column(i);
            double sum = 0, size = 0;
            for (int t = 0; t < tokens; ++t) {
              const double term = quantised[row][t] * static_cast<double>(v[t][c]) *
                                  static_cast<double>(static_cast<float>(v_scale[t / mx_block][c]));
              sum += term, size += std::fabs(term);
            }
            // Sums of a depth are rounded to FP32, one after another.
            wrong += !(std::fabs(static_cast<double>(part[i]) - sum) <= size * 0x1p-22);
            wrong += down[output::row(i)] != 1;
          }
        });
  });
  CHECK(wrong == 0);
}

/// Every byte of both payloads, all scales, marks, both images and the plain payload; then
/// the same images again from the payloads as given.
template <class M, int D>
void check_quantise_blocks(dtype type, int d, bool shifted, std::uint64_t seed) {
  using Recipe = recipe::mx32;
  using E = e4m3;
  using kernel_type = simt::quantise_blocks_kernel<M, Recipe, E, D>;
  const tensor_to_quantise given(type, d, shifted, true, seed);
  const documents& docs = given.docs;
  constexpr std::int64_t heads = tensor_to_quantise::heads;
  const scale_layout<Recipe> at{docs, heads, d};
  const std::int64_t slots = docs.slots(128), tiles = slots * heads, elements = docs.rows() * heads * d;
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };

  /// Both payloads with their scales.
  struct payloads {
    std::vector<std::uint8_t> rows, row_scales, columns, column_scales;
    quantized view;
    payloads(const documents& of, const scale_layout<Recipe>& at, std::int64_t n, std::int64_t channels)
        : rows(static_cast<std::size_t>(n)),
          row_scales(static_cast<std::size_t>(at.rowwise_count())),
          columns(rows),
          column_scales(static_cast<std::size_t>(at.columnwise_count())) {
      view.rowwise = contiguous(static_cast<void*>(rows.data()), dtype::e4m3, of.total, heads, channels);
      view.columnwise = contiguous(static_cast<void*>(columns.data()), dtype::e4m3, of.total, heads, channels);
      view.rowwise_scale = row_scales.data(), view.columnwise_scale = column_scales.data();
    }
  };
  payloads expected(docs, at, elements, d), kept(docs, at, elements, d);
  const quantiser<Recipe, E> reference{given.x, given.subtracted(), expected.view, at};

  struct images {
    struct alignas(16) piece {
      std::uint8_t bytes[16];
    };
    std::vector<piece> rows, columns, plain;
    std::vector<std::uint32_t> nonfinite, channels;
    images(std::size_t tiles)
        : rows(tiles * simt::image_bytes<M, true>(128, D) / 16),
          columns(rows.size()),
          plain(tiles * simt::plain_bytes<true>(D) / 16),
          nonfinite(tiles * 4),
          channels(tiles * 128 * (D / 32)) {}
    simt::tile_images view() {
      return {rows.data()->bytes, columns.data()->bytes, nonfinite.data(), channels.data(), plain.data()->bytes};
    }
  };
  images made(count(tiles)), again(count(tiles));
  kernel_type kernel{};
  kernel.at = at;
  kernel.x = given.x;
  kernel.shift = given.subtracted();
  kernel.made = kept.view;
  kernel.images = made.view();
  sim::launch(kernel, {.seed = seed});

  using A = typename M::template atom<E, E>;
  using layout = simt::image_layout<M>;
  constexpr int block_bytes = simt::operand_block_bytes<M, true>;
  int wrong = 0, marked = 0;
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const token_tile tile = docs.tile_at(slot, 128);
    if (tile.tokens == 0 || docs.is_tail(tile.document)) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      reference.tile(tile, h);
      const std::int64_t index = h * slots + slot;
      const payload_plane plane = plane_of<Recipe>(expected.view, at, tile.document, h);
      const simt::tile_images of = made.view();
      const std::uint8_t* rows = of.rows + index * simt::image_bytes<M, true>(128, D);
      const std::uint8_t* columns = of.columns + index * simt::image_bytes<M, true>(128, D);
      const std::uint8_t* plain = of.plain + index * simt::plain_bytes<true>(D);
      const auto row_scale = [&](int i, int b) {
        return i < tile.tokens && b < d / 32 ? plane.rowwise_blocks[(tile.first + i) * (d / 32) + b] : e8m0::bias;
      };
      const auto column_scale = [&](int b, int c) {
        return b * 32 < tile.tokens && c < d ? plane.columnwise_blocks[(tile.first / 32 + b) * d + c] : e8m0::bias;
      };
      for (int i = 0; i < 128; ++i) {
        const bool mark = (made.nonfinite[count(index * 4 + i / 32)] >> i % 32 & 1) != 0;
        bool any = false;
        for (int c = 0; c < D; ++c) {
          const bool exists = i < tile.tokens && c < d;
          const auto byte_of = [&](const std::uint8_t* payload, std::int64_t stride) {
            return exists ? payload[(tile.first + i) * stride + c] : std::uint8_t{0};
          };
          const std::uint8_t by_row = byte_of(plane.rowwise, plane.rowwise_stride);
          const std::uint8_t by_column = byte_of(plane.columnwise, plane.columnwise_stride);
          const bool strange = (by_row & 0x7f) > E::max_code;
          any = any || strange;
          wrong += rows[(i / A::size * (D / A::depth) + c / A::depth) * block_bytes +
                        layout::byte_at(i % A::size, c % A::depth)] != by_row;
          int token_slot = 0;
          while (layout::token_of_slot(token_slot) != i % A::depth) ++token_slot;
          wrong += columns[(i / A::depth * (D / A::size) + c / A::size) * block_bytes +
                           layout::byte_at(c % A::size, token_slot)] != (strange ? 0 : by_column);
          wrong += plain[i * D + c] != by_row;
          wrong += plain[128 * D + i * (D / 32) + c / 32] != row_scale(i, c / 32);
          if (mark)
            wrong += ((made.channels[count((index * 128 + i) * (D / 32) + c / 32)] >> c % 32 & 1) != 0) != strange;
        }
        wrong += mark != any;
        marked += mark;
      }
      for (int block = 0; block < 128 * D / layout::block_bytes; ++block)
        for (int lane = 0; lane < M::lanes; ++lane) {
          const int at_byte = block * block_bytes + layout::block_bytes + lane, depth_blocks = A::depth / 32;
          const int row = A::scale_row(lane), b = A::scale_block(lane);
          wrong += rows[at_byte] !=
                   row_scale(block / (D / A::depth) * A::size + row, block % (D / A::depth) * depth_blocks + b);
          wrong += columns[at_byte] !=
                   column_scale(block / (D / A::size) * depth_blocks + b, block % (D / A::size) * A::size + row);
        }
    }
  }
  CHECK(wrong == 0);
  CHECK(marked > 10);
  CHECK(kept.rows == expected.rows);
  CHECK(kept.row_scales == expected.row_scales);
  CHECK(kept.columns == expected.columns);
  CHECK(kept.column_scales == expected.column_scales);

  kernel.given = expected.view;
  kernel.images = again.view();
  sim::launch(kernel, {.seed = seed});
  const auto same = [](const auto& a, const auto& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  };
  CHECK(same(made.rows, again.rows));
  CHECK(same(made.columns, again.columns));
  CHECK(same(made.plain, again.plain));
  CHECK(again.nonfinite == made.nonfinite);
}

}  // namespace simt_test
