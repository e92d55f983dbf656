// SPDX-License-Identifier: Apache-2.0
// The seam's operations on CPU tiles: plain loops over rows, written so that compilers vectorise the inner one. Values
// that functions take by row are loop invariants there, values by column are streams.
#pragma once

#include <octavo/backends/cpu/math.hpp>
#include <octavo/backends/cpu/tile.hpp>
#include <octavo/scaling/quantize.hpp>

#include <atomic>
#include <thread>

OCTAVO_BEGIN_CPU_NAMESPACE
namespace cpu_detail {

inline constexpr int max_columns = 256;  ///< of any tile: keys of a tile, or channels
inline constexpr int strip = 8;          ///< rows that are transposed together, so that stores run along the row

/// The columns of a tile, which are whole blocks of 32: said in a form that lets the compiler drop the scalar end of
/// every vector loop.
inline int whole_blocks(int columns) { return columns & ~31; }

/// Calls row(i, buffer) for the rows of a strip and writes the buffers transposed: to[j * stride + i].
template <class Row>
void transpose_rows(float* to, int stride, int rows, int columns, Row row) {
  float buffer[strip][max_columns];
  for (int i0 = 0; i0 < rows; i0 += strip) {
    for (int i = 0; i < strip; ++i) row(i0 + i, buffer[i]);
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < strip; ++i) to[j * stride + i0 + i] = buffer[i][j];
  }
}

inline bool all_finite(const float* x, int count) {
  std::uint32_t wrong = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t exponent = detail::bit_cast<std::uint32_t>(x[i]) & 0x7f800000u;
    wrong |= static_cast<std::uint32_t>(exponent == 0x7f800000u);
  }
  return wrong == 0;
}

struct operations {
  static float exp2(float x) { return cpu_detail::exp2(x); }
  static float tanh(float x) { return cpu_detail::tanh(x); }

  template <class E, side S, image I, int R, int C>
  static void load(context&, operand<E, S, I, R, C>& to, const payload_plane& x, std::int64_t first, int n) {
    const int columns = whole_blocks(to.columns);
    const auto row = [&](int i, float* out) {
      if (i < n)
        read_row<E, I>(x, first + i, columns, out);
      else
        for (int c = 0; c < columns; ++c) out[c] = 0;
    };
    if constexpr (operand<E, S, I, R, C>::transposed)
      transpose_rows(to.data, to.rows, to.rows, columns, row);
    else
      for (int i = 0; i < to.rows; ++i) row(i, to.data + i * to.columns);
    if constexpr (S == side::right) to.finite = all_finite(to.data, to.rows * to.columns);
  }

  template <int M, int N>
  static void store(context&, const tensor& to, std::int64_t offset, const accum<M, N>& from, int n) {
    for (int i = 0; i < n; ++i) write_elements(to, offset + i * to.stride_s, from.columns, from.row(i));
  }

  template <int M, int N>
  static void accumulate(context&, float* to, std::int64_t stride, const accum<M, N>& from, int n) {
    const int columns = whole_blocks(from.columns);
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < columns; ++j) to[i * stride + j] += from.row(i)[j];
  }

  /// Workers take items in order and a key tile waits only for earlier ones, so the wait always ends.
  template <class F>
  static void in_order(context&, std::int32_t* turn, std::int32_t number, F f) {
    const std::atomic_ref<std::int32_t> now(*turn);
    while (now.load(std::memory_order_acquire) != number) std::this_thread::yield();
    f();
    now.store(number + 1, std::memory_order_release);
  }

  template <int M, int N, class EA, class EB, image IA, image IB, int RA, int CA, int RB, int CB>
  static void mma(context&, accum<M, N>& c, const operand<EA, side::left, IA, RA, CA>& a,
                  const operand<EB, side::right, IB, RB, CB>& b) {
    static_assert(!(IA == image::columnwise && IB == image::rowwise),
                  "mma: a left operand quantised along its columns' direction (columnwise) contracts rows, so the "
                  "right one must be columnwise too");
    static_assert((IA == image::rowwise ? CA : RA) == (IB == image::rowwise ? CB : RB),
                  "mma: the contracted extents of the two operands differ: the images do not belong together");
    const auto product = b.finite ? &cpu_detail::mma : &mma_skipping_zeros;
    product({c.data, c.columns}, a.layout(), b.layout(), c.rows, c.columns, a.contracted());
  }

  /// The accumulator's memory is in the operand's layout already, so the operand takes it over until the tile is next
  /// written, which is after the product.
  template <class E, int R, int C, int M, int N>
  static void convert(context&, operand<E, side::left, image::rowwise, R, C>& to, const accum<M, N>& from) {
    to.data = from.data;
  }

  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  static void quantize(context&, operand<E, side::left, image::rowwise, R, C>& to, row_vector<D>& descale,
                       const accum<M, N>& from, F f, const V&... v) {
    using T = typename element_of<E>::type;
    constexpr bool blocks = element_of<E>::block_scaled;
    const int columns = whole_blocks(from.columns);
    const int run = blocks ? mx_block : columns;
    for (int i = 0; i < from.rows; ++i) {
      float* y = to.data + i * to.columns;
      const float* x = from.row(i);
      for (int j = 0; j < columns; ++j) y[j] = f(x[j], i, j, v.at(i, j)...);
      descale.data[i] = 1;
      if constexpr (std::is_same_v<T, bf16>) {
        for (int j = 0; j < columns; ++j) y[j] = bf16::round(y[j]);
      } else {
        for (int j0 = 0; j0 < columns; j0 += run) {
          const e8m0 scale = e8m0::for_amax(finite_amax(y + j0, run), T::max);
          const float reciprocal = scale.reciprocal(), back = blocks ? static_cast<float>(scale) : 1.0f;
          for (int j = j0; j < j0 + run; ++j) y[j] = round_finite<T>(y[j], reciprocal) * back;
          if (!blocks) descale.data[i] = static_cast<float>(scale);
        }
      }
    }
  }

  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  static void quantize(context&, operand<E, side::left, image::columnwise, R, C>& to, row_vector<D>& descale,
                       const accum<M, N>& from, F f, const V&... v) {
    using T = typename element_of<E>::type;
    constexpr bool blocks = element_of<E>::block_scaled;
    const int columns = whole_blocks(from.columns);
    const int run = blocks ? mx_block : from.rows;
    float amax[max_columns], reciprocal[max_columns], back[max_columns];
    for (int j = 0; j < columns; ++j) descale.data[j] = 1;
    for (int i0 = 0; i0 < from.rows; i0 += run) {
      if constexpr (!std::is_same_v<T, bf16>) {
        for (int j = 0; j < columns; ++j) amax[j] = 0;
        for (int i = i0; i < i0 + run; ++i) {
          const float* x = from.row(i);
          for (int j = 0; j < columns; ++j) amax[j] = finite_amax(amax[j], f(x[j], i, j, v.at(i, j)...));
        }
        for (int j = 0; j < columns; ++j) {
          const e8m0 scale = e8m0::for_amax(amax[j], T::max);
          reciprocal[j] = scale.reciprocal();
          back[j] = blocks ? static_cast<float>(scale) : 1.0f;
          if (!blocks) descale.data[j] = static_cast<float>(scale);
        }
      }
      transpose_rows(to.data + i0, to.rows, run, columns, [&](int i, float* y) {
        const float* x = from.row(i0 + i);
        for (int j = 0; j < columns; ++j) {
          const float value = f(x[j], i0 + i, j, v.at(i0 + i, j)...);
          if constexpr (std::is_same_v<T, bf16>)
            y[j] = bf16::round(value);
          else
            y[j] = round_finite<T>(value, reciprocal[j]) * back[j];
        }
      });
    }
  }

  template <int M, int N>
  static void fill(context&, accum<M, N>& x, float value) {
    for (int i = 0; i < x.rows * x.columns; ++i) x.data[i] = value;
  }

  template <int M, int N, class F, class... V>
  static void transform(context&, accum<M, N>& x, F f, const V&... v) {
    const int columns = whole_blocks(x.columns);
    for (int i = 0; i < x.rows; ++i) {
      float* row = x.row(i);
      OCTAVO_CPU_INDEPENDENT
      for (int j = 0; j < columns; ++j) row[j] = f(row[j], i, j, v.at(i, j)...);
    }
  }

  template <int M, int N, class F, class... V>
  static void combine(context&, accum<M, N>& x, const accum<M, N>& y, F f, const V&... v) {
    const int columns = whole_blocks(x.columns);
    for (int i = 0; i < x.rows; ++i) {
      float* row = x.row(i);
      const float* other = y.row(i);
      OCTAVO_CPU_INDEPENDENT
      for (int j = 0; j < columns; ++j) row[j] = f(row[j], other[j], i, j, v.at(i, j)...);
    }
  }

  template <int D, int M, int N, class F, class... V>
  static void row_max(context&, row_vector<D>& r, const accum<M, N>& x, F f, const V&... v) {
    fold_rows(r, x, [](float a, float b) { return b > a ? b : a; }, minus_infinity, f, v...);
  }
  template <int D, int M, int N, class F, class... V>
  static void row_sum(context&, row_vector<D>& r, const accum<M, N>& x, F f, const V&... v) {
    fold_rows(r, x, [](float a, float b) { return a + b; }, 0.0f, f, v...);
  }

  template <class Vector, class F>
  static void load_rows(context&, Vector& r, int n, F f) {
    for (int i = 0; i < r.size; ++i) r.data[i] = i < n ? f(i) : 0.0f;
  }
  template <int M, class F, class... V>
  static void transform_rows(context&, row_vector<M>& r, F f, const V&... v) {
    for (int i = 0; i < r.size; ++i) r.data[i] = f(r.data[i], i, v.at(i, 0)...);
  }
  template <class F, class... V>
  static void for_rows(context&, int n, F f, const V&... v) {
    for (int i = 0; i < n; ++i) f(i, v.at(i, 0)...);
  }

  /// One thread runs a tile: what it wrote it sees.
  static void sync(context&) {}

 private:
  static constexpr float minus_infinity = -detail::float_infinity();

  /// A row of an image as floats: payload, times its block scales where they travel in the operand.
  template <class E, image I>
  static void read_row(const payload_plane& x, std::int64_t token, int d, float* out) {
    using T = typename element_of<E>::type;
    const std::uint8_t* bytes = I == image::rowwise ? x.rowwise : x.columnwise;
    const std::int64_t first = token * (I == image::rowwise ? x.rowwise_stride : x.columnwise_stride);
    if constexpr (std::is_same_v<T, bf16>) {
      const auto* from = reinterpret_cast<const bf16*>(bytes) + first;
      for (int c = 0; c < d; ++c) out[c] = nan_unless_finite(static_cast<float>(from[c]));
    } else {
      for (int c = 0; c < d; ++c) out[c] = T::decode(bytes[first + c]);
    }
    if constexpr (element_of<E>::block_scaled && I == image::rowwise) {
      const std::uint8_t* scales = x.rowwise_blocks + token * (d / mx_block);
      for (int c0 = 0; c0 < d; c0 += mx_block) {
        const float scale = static_cast<float>(e8m0{scales[c0 / mx_block]});
        for (int c = c0; c < c0 + mx_block; ++c) out[c] *= scale;
      }
    } else if constexpr (element_of<E>::block_scaled) {
      const std::uint8_t* scales = x.columnwise_blocks + token / mx_block * d;
      for (int c = 0; c < d; ++c) out[c] *= static_cast<float>(e8m0{scales[c]});
    }
  }

  /// round(x / scale), without saturating an infinity.
  template <class T>
  static float round_finite(float x, float reciprocal) {
    return T::round(x * reciprocal) + (x - x);
  }

  template <int D, int M, int N, class Fold, class F, class... V>
  static void fold_rows(row_vector<D>& r, const accum<M, N>& x, Fold fold, float neutral, F f, const V&... v) {
    float mapped[max_columns];
    const int columns = whole_blocks(x.columns);
    for (int i = 0; i < x.rows; ++i) {
      const float* row = x.row(i);
      for (int j = 0; j < columns; ++j) mapped[j] = f(row[j], i, j, v.at(i, j)...);
      // Sixteen running results, a vector's worth, folded at the end in a fixed order.
      float lane[16];
      for (float& e : lane) e = neutral;
      for (int j = 0; j < columns; j += 16)
        for (int t = 0; t < 16; ++t) lane[t] = fold(lane[t], mapped[j + t]);
      for (int half = 8; half > 0; half /= 2)
        for (int t = 0; t < half; ++t) lane[t] = fold(lane[t], lane[t + half]);
      r.data[i] = fold(r.data[i], lane[0]);
    }
  }
};

}  // namespace cpu_detail
OCTAVO_END_CPU_NAMESPACE
