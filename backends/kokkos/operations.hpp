// SPDX-License-Identifier: Apache-2.0
// The seam's operations on tiles: products, functions of elements, and folds over rows.
#pragma once

#include <octavo/backends/kokkos/math.hpp>
#include <octavo/backends/kokkos/mma.hpp>
#include <octavo/backends/kokkos/quantize.hpp>

OCTAVO_BEGIN_NAMESPACE
namespace backends::kokkos_detail {

template <class Space>
struct operations : memory_operations<Space>, quantize_operations<Space> {
  using context = kokkos_detail::context<Space>;
  template <int M, int N>
  using accum = kokkos_detail::accum<Space, M, N>;
  template <class E, side S, image I, int R, int C>
  using operand = kokkos_detail::operand<Space, E, S, I, R, C>;
  template <int M>
  using row_vector = kokkos_detail::row_vector<Space, M>;
  template <int N>
  using col_vector = kokkos_detail::col_vector<Space, N>;

  KOKKOS_FUNCTION static float exp2(float x) { return kokkos_detail::exp2(x); }
  KOKKOS_FUNCTION static float tanh(float x) { return kokkos_detail::tanh(x); }

  template <int M, int N, class EA, class EB, image IA, image IB, int RA, int CA, int RB, int CB>
  KOKKOS_FUNCTION static void mma(context& c, accum<M, N>& sum, const operand<EA, side::left, IA, RA, CA>& a,
                                  const operand<EB, side::right, IB, RB, CB>& b) {
    static_assert(!(IA == image::columnwise && IB == image::rowwise),
                  "mma: a left operand quantised along its columns' direction (columnwise) contracts rows, so the "
                  "right one must be columnwise too");
    static_assert((IA == image::rowwise ? CA : RA) == (IB == image::rowwise ? CB : RB),
                  "mma: the contracted extents of the two operands differ: the images do not belong together");
    const matrix to{sum.data, sum.columns}, left{a.data, a.stride()}, right{b.data, b.stride()};
    if (b.finite)
      multiply(c, to, left, right, sum.rows, sum.columns, a.contracted());
    else
      multiply_skipping_zeros(c, to, left, right, sum.rows, sum.columns, a.contracted());
  }

  /// The accumulator's memory is in the operand's layout already, so the operand takes it over until the tile is next
  /// written, which is after the product.
  template <class E, int R, int C, int M, int N>
  KOKKOS_FUNCTION static void convert(context&, operand<E, side::left, image::rowwise, R, C>& to,
                                      const accum<M, N>& from) {
    to.data = from.data;
  }

  template <int M, int N>
  KOKKOS_FUNCTION static void fill(context& c, accum<M, N>& x, float value) {
    for_elements(c, x.rows, x.columns, [&](int i, int j) { x.row(i)[j] = value; });
  }
  template <int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void transform(context& c, accum<M, N>& x, const F& f, const V&... v) {
    for_elements(c, x.rows, x.columns, [&](int i, int j) {
      float& e = x.row(i)[j];
      e = f(e, i, j, v.at(i, j)...);
    });
  }
  template <int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void combine(context& c, accum<M, N>& x, const accum<M, N>& y, const F& f, const V&... v) {
    for_elements(c, x.rows, x.columns, [&](int i, int j) {
      float& e = x.row(i)[j];
      e = f(e, y.row(i)[j], i, j, v.at(i, j)...);
    });
  }

  template <int D, int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void row_max(context& c, row_vector<D>& r, const accum<M, N>& x, const F& f, const V&... v) {
    const auto larger = [](float a, float b) { return b > a ? b : a; };  // a NaN is passed over
    fold_rows(c, r, x, larger, -detail::float_infinity(), f, v...);
  }
  template <int D, int M, int N, class F, class... V>
  KOKKOS_FUNCTION static void row_sum(context& c, row_vector<D>& r, const accum<M, N>& x, const F& f, const V&... v) {
    fold_rows(c, r, x, [](float a, float b) { return a + b; }, 0.0f, f, v...);
  }

  template <class Vector, class F>
  KOKKOS_FUNCTION static void load_rows(context& c, Vector& r, int n, const F& f) {
    for_each(c, r.size, [&](int i) { r.data[i] = i < n ? f(i) : 0.0f; });
  }
  template <int M, class F, class... V>
  KOKKOS_FUNCTION static void transform_rows(context& c, row_vector<M>& r, const F& f, const V&... v) {
    for_each(c, r.size, [&](int i) { r.data[i] = f(r.data[i], i, v.at(i, 0)...); });
  }
  template <class F, class... V>
  KOKKOS_FUNCTION static void for_rows(context& c, int n, const F& f, const V&... v) {
    for_each(c, n, [&](int i) { f(i, v.at(i, 0)...); });
  }

  /// Every loop of a team ends with its barrier.
  KOKKOS_FUNCTION static void sync(context&) {}

 private:
  /// A row is one lane's, in the same fixed order on every space: sixteen running results, a vector's worth of a host,
  /// folded at the end.
  template <int D, int M, int N, class Fold, class F, class... V>
  KOKKOS_FUNCTION static void fold_rows(context& c, row_vector<D>& r, const accum<M, N>& x, const Fold& fold,
                                        float neutral, const F& f, const V&... v) {
    for_each(c, x.rows, [&](int i) {
      const float* row = x.row(i);
      float lane[16];
      for (float& e : lane) e = neutral;
      for (int j = 0; j < x.columns; j += 16)
        for (int t = 0; t < 16; ++t) lane[t] = fold(lane[t], f(row[j + t], i, j + t, v.at(i, j + t)...));
      for (int half = 8; half > 0; half /= 2)
        for (int t = 0; t < half; ++t) lane[t] = fold(lane[t], lane[t + half]);
      r.data[i] = fold(r.data[i], lane[0]);
    });
  }
};

}  // namespace backends::kokkos_detail
OCTAVO_END_NAMESPACE
