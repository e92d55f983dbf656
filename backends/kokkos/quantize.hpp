// SPDX-License-Identifier: Apache-2.0
// P and dS on their way into a product: rounded to E, with powers of two from the amax along the contraction.
#pragma once

#include <octavo/backends/kokkos/memory.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

/// What a run of values becomes when it shares a scale: value = payload * scale, and the product works with `back`
/// times the payload: the scale itself where it travels in the operand, else 1.
struct run_scale {
  float reciprocal = 1, back = 1;
};

/// The scale of a run, kept in `descale` where it does not travel in the operand.
template <class E>
KOKKOS_FUNCTION run_scale scale_for(float amax, float& descale) {
  if constexpr (std::is_same_v<typename element_of<E>::type, bf16>) {
    descale = 1;
    return {};
  } else {
    const e8m0 scale = e8m0::for_amax(amax, element_of<E>::type::max);
    const float value = static_cast<float>(scale);
    descale = element_of<E>::block_scaled ? 1.0f : value;
    return {scale.reciprocal(), element_of<E>::block_scaled ? value : 1.0f};
  }
}

/// round(x / scale), times what goes back; an infinity is not saturated but made NaN, by the difference that is 0 for
/// every other number.
template <class E>
KOKKOS_FUNCTION float round_scaled(float x, const run_scale& s) {
  using T = typename element_of<E>::type;
  if constexpr (std::is_same_v<T, bf16>)
    return bf16::round(x);
  else
    return (T::round(x * s.reciprocal) + (x - x)) * s.back;
}

template <class Space>
struct quantize_operations {
  /// Scales along the rows: a row is one lane's.
  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void quantize(context<Space>& c, operand<Space, E, side::left, image::rowwise, R, C>& to,
                                       row_vector<Space, D>& descale, const accum<Space, M, N>& from, const F& f,
                                       const V&... v) {
    const int run = element_of<E>::block_scaled ? mx_block : from.columns;
    for_each(c, from.rows, [&](int i) {
      const float* x = from.row(i);
      float* y = to.data + i * to.columns;
      for (int j0 = 0; j0 < from.columns; j0 += run) {
        const int end = j0 + (run & ~31);
        OCTAVO_KOKKOS_INDEPENDENT
        for (int j = j0; j < end; ++j) y[j] = f(x[j], i, j, v.at(i, j)...);
        const run_scale scale = scale_for<E>(finite_amax(y + j0, run), descale.data[i]);
        OCTAVO_KOKKOS_INDEPENDENT
        for (int j = j0; j < end; ++j) y[j] = round_scaled<E>(y[j], scale);
      }
    });
  }

  /// Scales along the columns: a strip of columns, as wide as a square, is one lane's.
  template <class E, int R, int C, int D, int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void quantize(context<Space>& c, operand<Space, E, side::left, image::columnwise, R, C>& to,
                                       row_vector<Space, D>& descale, const accum<Space, M, N>& from, const F& f,
                                       const V&... v) {
    constexpr int edge = tuning<Space>::square;
    const int run = element_of<E>::block_scaled ? mx_block : from.rows;
    for_each(c, from.columns / edge, [&](int strip) {
      const int first = strip * edge;
      const auto value = [&](int i, int j) { return f(from.row(i)[first + j], i, first + j, v.at(i, first + j)...); };
      for (int i0 = 0; i0 < from.rows; i0 += run) {
        float amax[edge] = {};
        for (int i = i0; i < i0 + run; ++i)
          for (int j = 0; j < edge; ++j) amax[j] = finite_amax(amax[j], value(i, j));
        run_scale scale[edge];
        for (int j = 0; j < edge; ++j) scale[j] = scale_for<E>(amax[j], descale.data[first + j]);
        for (int i = i0; i < i0 + run; i += edge) {
          float square[edge][edge];
          for (int a = 0; a < edge; ++a)
            for (int j = 0; j < edge; ++j) square[a][j] = round_scaled<E>(value(i + a, j), scale[j]);
          to.put(i, first, square);
        }
      }
    });
  }
};

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
