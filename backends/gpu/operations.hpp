// SPDX-License-Identifier: Apache-2.0
// The seam's operations by a thread block on tiles in memory. Rows belong to warps, columns to lanes; every operation
// ends with a barrier, so that what it wrote the next one sees.
#pragma once

#include <octavo/backends/gpu/tile.hpp>
#include <octavo/scaling/quantize.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::gpu {

__device__ inline int lane_id() { return static_cast<int>(threadIdx.x) % warp_threads; }
__device__ inline int warp_id() { return static_cast<int>(threadIdx.x) / warp_threads; }
__device__ inline int warps() { return static_cast<int>(blockDim.x) / warp_threads; }

template <class Fold>
__device__ float fold_warp(float x, Fold fold) {
  for (int offset = warp_threads / 2; offset > 0; offset /= 2) x = fold(x, shuffle_xor(x, offset));
  return x;
}

struct block_operations {
  /// 2^x with the integer part taken off first, so that an integer added to x changes no mantissa: P must round the
  /// same whatever the running maximum is. 0 below -126; NaN stays NaN.
  static __device__ float exp2(float x) {
    if (x < -126.0f) return 0;
    const float y = x > 127.0f ? 127.0f : x, n = rintf(y);
    return ::exp2f(y - n) * exp2i(static_cast<int>(n));
  }
  static __device__ float tanh(float x) { return ::tanhf(x); }

  static __device__ void sync(block_context&) { __syncthreads(); }

  template <class E, side S, image I, int R, int C>
  static __device__ void load(block_context&, operand<E, S, I, R, C>& to, const payload_plane& x, std::int64_t first,
                              int n) {
    for (int i = warp_id(); i < to.rows; i += warps())
      for (int c = lane_id(); c < to.columns; c += warp_threads)
        to.at(i, c) = i < n ? element<E, I>(x, first + i, c, to.columns) : 0.0f;
    __syncthreads();
  }

  template <int M, int N>
  static __device__ void store(block_context&, const tensor& to, std::int64_t offset, const accum<M, N>& from, int n) {
    for (int i = warp_id(); i < n; i += warps())
      for (int c = lane_id(); c < from.columns; c += warp_threads)
        write_elements(to, offset + i * to.stride_s + c, 1, from.data + i * from.columns + c);
    __syncthreads();
  }

  template <int M, int N>
  static __device__ void accumulate(block_context&, float* to, std::int64_t stride, const accum<M, N>& from, int n) {
    for (int i = warp_id(); i < n; i += warps())
      for (int c = lane_id(); c < from.columns; c += warp_threads)
        to[i * stride + c] += from.data[i * from.columns + c];
    __syncthreads();
  }

  /// Blocks take items in order (a ticket each) and a key tile waits only for earlier ones, so the wait always ends.
  template <class F>
  static __device__ void in_order(block_context&, std::int32_t* turn, std::int32_t number, F f) {
    if (threadIdx.x == 0)
      while (atomicAdd(turn, 0) != number) pause();
    __syncthreads();
    __threadfence();
    f();
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(turn, number + 1);
  }

  /// FP32 on the ordinary units, k by k: an element's bits do not depend on the tile around it. A factor of zero
  /// carries nothing, whatever stands on the other side.
  template <int M, int N, class EA, class EB, image IA, image IB, int RA, int CA, int RB, int CB>
  static __device__ void mma(block_context&, accum<M, N>& c, const operand<EA, side::left, IA, RA, CA>& a,
                             const operand<EB, side::right, IB, RB, CB>& b) {
    static_assert(!(IA == image::columnwise && IB == image::rowwise),
                  "mma: a columnwise left operand needs a columnwise right one");
    static_assert((IA == image::rowwise ? CA : RA) == (IB == image::rowwise ? CB : RB),
                  "mma: the contracted extents differ");
    constexpr int block = 4;  // rows of C per thread and step: B is read once for all of them
    const int depth = a.contracted();
    for (int i0 = warp_id() * block; i0 < c.rows; i0 += warps() * block)
      for (int j = lane_id(); j < c.columns; j += warp_threads) {
        float sum[block];
        for (int r = 0; r < block; ++r) sum[r] = c.data[(i0 + r) * c.columns + j];
        for (int k = 0; k < depth; ++k) {
          const float y = b.data[k * c.columns + j];
          for (int r = 0; r < block; ++r)
            if (const float x = a.data[(i0 + r) * depth + k]; x != 0) sum[r] = fmaf(x, y, sum[r]);
        }
        for (int r = 0; r < block; ++r) c.data[(i0 + r) * c.columns + j] = sum[r];
      }
    __syncthreads();
  }

  /// The accumulator's memory is in the operand's layout already.
  template <class E, int R, int C, int M, int N>
  static __device__ void convert(block_context&, operand<E, side::left, image::rowwise, R, C>& to,
                                 const accum<M, N>& from) {
    to.data = from.data;
  }

  /// Runs along a row: a warp per row.
  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  static __device__ void quantize(block_context&, operand<E, side::left, image::rowwise, R, C>& to,
                                  row_vector<D>& descale, const accum<M, N>& from, F f, const V&... v) {
    constexpr bool blocks = element_of<E>::block_scaled;
    const int run = blocks ? mx_block : from.columns;
    for (int i = warp_id(); i < from.rows; i += warps())
      for (int j0 = 0; j0 < from.columns; j0 += run) {
        float amax = 0;
        for (int j = j0 + lane_id(); j < j0 + run; j += warp_threads)
          amax = finite_amax(amax, f(from.data[i * from.columns + j], i, j, v.at(i, j)...));
        amax = fold_warp(amax, [](float a, float b) { return finite_amax(a, b); });
        const e8m0 scale = scale_of<E>(amax);
        for (int j = j0 + lane_id(); j < j0 + run; j += warp_threads)
          to.at(i, j) = rounded<E>(f(from.data[i * from.columns + j], i, j, v.at(i, j)...), scale);
        if (lane_id() == 0) descale.data[i] = blocks ? 1.0f : static_cast<float>(scale);
      }
    __syncthreads();
  }
  /// Runs down a column: a thread per column.
  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  static __device__ void quantize(block_context&, operand<E, side::left, image::columnwise, R, C>& to,
                                  row_vector<D>& descale, const accum<M, N>& from, F f, const V&... v) {
    constexpr bool blocks = element_of<E>::block_scaled;
    const int run = blocks ? mx_block : from.rows;
    for (int j = static_cast<int>(threadIdx.x); j < from.columns; j += static_cast<int>(blockDim.x))
      for (int i0 = 0; i0 < from.rows; i0 += run) {
        float amax = 0;
        for (int i = i0; i < i0 + run; ++i)
          amax = finite_amax(amax, f(from.data[i * from.columns + j], i, j, v.at(i, j)...));
        const e8m0 scale = scale_of<E>(amax);
        for (int i = i0; i < i0 + run; ++i)
          to.at(i, j) = rounded<E>(f(from.data[i * from.columns + j], i, j, v.at(i, j)...), scale);
        descale.data[j] = blocks ? 1.0f : static_cast<float>(scale);
      }
    __syncthreads();
  }

  template <int M, int N>
  static __device__ void fill(block_context&, accum<M, N>& x, float value) {
    for (int e = static_cast<int>(threadIdx.x); e < x.rows * x.columns; e += static_cast<int>(blockDim.x))
      x.data[e] = value;
    __syncthreads();
  }
  template <int M, int N, class F, class... V>
  static __device__ void transform(block_context&, accum<M, N>& x, F f, const V&... v) {
    for (int i = warp_id(); i < x.rows; i += warps())
      for (int j = lane_id(); j < x.columns; j += warp_threads)
        x.data[i * x.columns + j] = f(x.data[i * x.columns + j], i, j, v.at(i, j)...);
    __syncthreads();
  }
  template <int M, int N, class F, class... V>
  static __device__ void combine(block_context&, accum<M, N>& x, const accum<M, N>& y, F f, const V&... v) {
    for (int i = warp_id(); i < x.rows; i += warps())
      for (int j = lane_id(); j < x.columns; j += warp_threads)
        x.data[i * x.columns + j] = f(x.data[i * x.columns + j], y.data[i * x.columns + j], i, j, v.at(i, j)...);
    __syncthreads();
  }

  template <int D, int M, int N, class F, class... V>
  static __device__ void row_max(block_context&, row_vector<D>& r, const accum<M, N>& x, F f, const V&... v) {
    fold_rows(r, x, [](float a, float b) { return b > a ? b : a; }, -detail::float_infinity(), f, v...);
  }
  template <int D, int M, int N, class F, class... V>
  static __device__ void row_sum(block_context&, row_vector<D>& r, const accum<M, N>& x, F f, const V&... v) {
    fold_rows(r, x, [](float a, float b) { return a + b; }, 0.0f, f, v...);
  }

  template <class Vector, class F>
  static __device__ void load_rows(block_context&, Vector& r, int n, F f) {
    for (int i = static_cast<int>(threadIdx.x); i < r.size; i += static_cast<int>(blockDim.x))
      r.data[i] = i < n ? f(i) : 0.0f;
    __syncthreads();
  }
  template <int M, class F, class... V>
  static __device__ void transform_rows(block_context&, row_vector<M>& r, F f, const V&... v) {
    for (int i = static_cast<int>(threadIdx.x); i < r.size; i += static_cast<int>(blockDim.x))
      r.data[i] = f(r.data[i], i, v.at(i, 0)...);
    __syncthreads();
  }
  template <class F, class... V>
  static __device__ void for_rows(block_context&, int n, F f, const V&... v) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) f(i, v.at(i, 0)...);
    __syncthreads();
  }

 private:
  /// Element (token, c) of an image: payload, times its block's scale where it travels in the operand.
  template <class E, image I>
  static __device__ float element(const payload_plane& x, std::int64_t token, int c, int d) {
    using T = typename element_of<E>::type;
    const std::uint8_t* bytes = I == image::rowwise ? x.rowwise : x.columnwise;
    const std::int64_t at = token * (I == image::rowwise ? x.rowwise_stride : x.columnwise_stride) + c;
    float value;
    if constexpr (std::is_same_v<T, bf16>)
      value = nan_unless_finite(static_cast<float>(reinterpret_cast<const bf16*>(bytes)[at]));
    else
      value = T::decode(bytes[at]);
    if constexpr (element_of<E>::block_scaled) {
      const std::uint8_t scale = I == image::rowwise ? x.rowwise_blocks[token * (d / mx_block) + c / mx_block]
                                                     : x.columnwise_blocks[token / mx_block * d + c];
      value *= static_cast<float>(e8m0{scale});
    }
    return value;
  }

  template <class E>
  static __device__ e8m0 scale_of(float amax) {
    using T = typename element_of<E>::type;
    if constexpr (std::is_same_v<T, bf16>)
      return e8m0::from_exponent(0);
    else
      return e8m0::for_amax(amax, T::max);
  }
  /// round(x / scale), as the payload or (block-scaled) as the value; an infinity becomes NaN, not the largest number.
  template <class E>
  static __device__ float rounded(float x, e8m0 scale) {
    using T = typename element_of<E>::type;
    const float y = T::round(x * scale.reciprocal()) + (x - x);
    return element_of<E>::block_scaled ? y * static_cast<float>(scale) : y;
  }

  template <int D, int M, int N, class Fold, class F, class... V>
  static __device__ void fold_rows(row_vector<D>& r, const accum<M, N>& x, Fold fold, float neutral, F f,
                                   const V&... v) {
    for (int i = warp_id(); i < x.rows; i += warps()) {
      float folded = neutral;
      for (int j = lane_id(); j < x.columns; j += warp_threads)
        folded = fold(folded, f(x.data[i * x.columns + j], i, j, v.at(i, j)...));
      folded = fold_warp(folded, fold);
      if (lane_id() == 0) r.data[i] = fold(r.data[i], folded);
    }
    __syncthreads();
  }
};

}  // namespace backends::gpu
OCTAVO_END_NAMESPACE
