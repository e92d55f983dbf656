// SPDX-License-Identifier: Apache-2.0
// The seam: what a backend provides so that the loops of algorithm/ run on it. backends/README.md is the prose of it.
//
// The algorithm never asks which thread owns an element. It hands the backend functions of (value, i, j, values of row
// i, values of column j) and names the operands of each product by side and image.
#pragma once

#include <octavo/numeric/e4m3.hpp>
#include <octavo/scaling/plane.hpp>
#include <octavo/tensor/problem.hpp>

#include <concepts>
#include <cstdint>

OCTAVO_BEGIN_NAMESPACE

/// On which side of a product an operand stands.
enum class side { left, right };

/// The direction in which the elements of one scale are consecutive, which is the contracted direction. An operand is
/// kept as its tensor is, rows of tokens (or of queries, for P and dS):
///
///     S  = Q K^T, dP = dO V^T     left rowwise    right rowwise       (both contract d)
///     O  = P V,   dQ = dS K       left rowwise    right columnwise    (both contract keys)
///     dV = P^T dO, dK = dS^T Q    left columnwise right columnwise    (both contract queries)
enum class image { rowwise, columnwise };

/// E with a power-of-two scale per 32 elements along the contraction, which travels in the operand.
template <class E>
struct block_scaled {};

/// What an operand's elements are, and whether their scales travel with them.
template <class E>
struct element_of {
  using type = E;
  static constexpr bool block_scaled = false;
};
template <class E>
struct element_of<octavo::block_scaled<E>> {
  using type = E;
  static constexpr bool block_scaled = true;
};

namespace detail {

/// Tiles of the smallest shape that every backend has, to ask whether an operation on them exists. (Functions, because
/// nvcc takes no lambda inside a requires-expression.)
template <class B>
struct probe {
  using context = typename B::context;
  using scores = typename B::template accum<B::tile_q, B::tile_kv>;
  using output = typename B::template accum<B::tile_q, B::max_head_dim>;
  using gradient = typename B::template accum<B::tile_kv, B::max_head_dim>;
  using q = typename B::template operand<e4m3, side::left, image::rowwise, B::tile_q, B::max_head_dim>;
  using k = typename B::template operand<e4m3, side::right, image::rowwise, B::tile_kv, B::max_head_dim>;
  using v = typename B::template operand<e4m3, side::right, image::columnwise, B::tile_kv, B::max_head_dim>;
  using p = typename B::template operand<e4m3, side::left, image::rowwise, B::tile_q, B::tile_kv>;
  using p_columns = typename B::template operand<e4m3, side::left, image::columnwise, B::tile_q, B::tile_kv>;
  using dout = typename B::template operand<e4m3, side::right, image::columnwise, B::tile_q, B::max_head_dim>;
  using rows = typename B::template row_vector<B::tile_q>;
  using keys = typename B::template row_vector<B::tile_kv>;
  using columns = typename B::template col_vector<B::tile_kv>;
  static float element(float x, int, int) { return x; }
  static float pair(float x, float y, int, int) { return x + y; }
  static float with_vectors(float x, int, int, float row, float column) { return x + row + column; }
  static float at(int) { return 0; }
  static float row(float x, int) { return x; }
  static void see(int, float) {}
  static void nothing() {}
};

}  // namespace detail

/// Types, tile sizes and the few facts of a backend.
template <class B>
concept HasTypes = requires {
  typename B::context;  // who runs a tile: a thread, a team, a warp group
  typename B::queue;    // what orders the work: a thread count, a stream
  { B::tile_q } -> std::convertible_to<int>;
  { B::tile_kv } -> std::convertible_to<int>;
  { B::max_head_dim } -> std::convertible_to<int>;
  { B::name() } -> std::convertible_to<const char*>;
  { B::exp2(1.0f) } -> std::same_as<float>;
  { B::tanh(1.0f) } -> std::same_as<float>;
};
template <class B>
concept HasLoad =
    requires(typename detail::probe<B>::context& c, typename detail::probe<B>::q& q, payload_plane const& x) {
      B::load(c, q, x, std::int64_t{}, 1);  // tokens [first, first + n) of a plane; zero beyond n
    };
template <class B>
concept HasStore =
    requires(typename detail::probe<B>::context& c, typename detail::probe<B>::output& o, tensor const& t) {
      B::store(c, t, std::int64_t{}, o, 1);  // n rows to a tensor from an element offset on, rounded to its type
    };
template <class B>
concept HasAccumulate =
    requires(typename detail::probe<B>::context& c, typename detail::probe<B>::output& o, float* p) {
      B::accumulate(c, p, std::int64_t{}, o, 1);  // += n rows in FP32 memory with a row stride
    };
template <class B>
concept HasInOrder = requires(typename detail::probe<B>::context& c, std::int32_t* turn) {
  B::in_order(
      c, turn, 0,
      &detail::probe<B>::nothing);  // runs f when *turn has reached the number, then raises it: a fixed order of sums
};
template <class B>
concept HasMma = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::scores& s,
                          typename detail::probe<B>::output& o, typename detail::probe<B>::gradient& g,
                          typename detail::probe<B>::q& q, typename detail::probe<B>::k& k,
                          typename detail::probe<B>::v& v, typename detail::probe<B>::p& p,
                          typename detail::probe<B>::p_columns& pc, typename detail::probe<B>::dout& dout) {
  B::mma(c, s, q, k);  // accum += left * right, the form named by the two images
  B::mma(c, o, p, v);
  B::mma(c, g, pc, dout);
};
template <class B>
concept HasConvert = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::p& p,
                              typename detail::probe<B>::scores& s) {
  B::convert(c, p, s);  // values that E represents exactly, as they are
};
template <class B>
concept HasQuantize = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::p& p,
                               typename detail::probe<B>::p_columns& pc, typename detail::probe<B>::scores& s,
                               typename detail::probe<B>::rows& r, typename detail::probe<B>::keys& k) {
  // f(x, i, j, ...) rounded to E with powers of two from its amax along the contraction; descale per row of the product
  B::quantize(c, p, r, s, &detail::probe<B>::element);
  B::quantize(c, pc, k, s, &detail::probe<B>::element);
};
template <class B>
concept HasTransform = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::scores& s,
                                typename detail::probe<B>::rows& r, typename detail::probe<B>::columns& j) {
  B::fill(c, s, 0.0f);
  B::transform(c, s, &detail::probe<B>::element);             // x = f(x, i, j)
  B::transform(c, s, &detail::probe<B>::with_vectors, r, j);  // x = f(x, i, j, r_i, c_j)
};
template <class B>
concept HasCombine = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::scores& s) {
  B::combine(c, s, s, &detail::probe<B>::pair);  // x = f(x, y, i, j, ...)
};
template <class B>
concept HasReductions = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::scores& s,
                                 typename detail::probe<B>::rows& r) {
  B::row_max(c, r, s, &detail::probe<B>::element);  // r_i = max(r_i, max_j f(x_ij, i, j, ...)); NaN is passed over
  B::row_sum(c, r, s, &detail::probe<B>::element);  // r_i += sum_j f(x_ij, i, j, ...)
};
template <class B>
concept HasRows = requires(typename detail::probe<B>::context& c, typename detail::probe<B>::rows& r,
                           typename detail::probe<B>::columns& j) {
  B::load_rows(c, r, 1, &detail::probe<B>::at);  // r_i = f(i) for i < n, 0 beyond
  B::load_rows(c, j, 1, &detail::probe<B>::at);
  B::transform_rows(c, r, &detail::probe<B>::row);  // r_i = f(r_i, i, values of further row vectors)
  B::for_rows(c, 1, &detail::probe<B>::see, r);     // f(i, values) for i < n: how row values leave the tile
};
template <class B>
concept HasSync = requires(typename detail::probe<B>::context& c) { B::sync(c); };

/// Tiles hold whole blocks of 32 and lie within one run of 128 tokens, over which `tile`, P and dS share a scale.
template <class B>
concept HasTileSizes = tile_block % B::tile_q == 0 && tile_block % B::tile_kv == 0 && B::tile_q % mx_block == 0 &&
                       B::tile_kv % mx_block == 0;
/// The host half: who it is, whether it can run, what its tiles take.
template <class B>
concept HasHost = requires(const problem& p) {
  { B::unavailable() } -> std::same_as<text>;
  { B::device() } -> std::same_as<text>;
  { B::scratch_bytes(p) } -> std::convertible_to<std::size_t>;
};

template <class B>
concept Backend = HasTypes<B> && HasTileSizes<B> && HasHost<B> && HasLoad<B> && HasStore<B> && HasAccumulate<B> &&
                  HasInOrder<B> && HasMma<B> && HasConvert<B> && HasQuantize<B> && HasTransform<B> && HasCombine<B> &&
                  HasReductions<B> && HasRows<B> && HasSync<B>;

/// Every backend ends with static_assert(require_backend<me>::value). One assert per operation, because nvcc prints
/// nothing of a failed concept but the text of the assert: the messages are the to-do list of a new backend.
template <class B>
struct require_backend {
  static_assert(HasTypes<B>, "Backend: a type, a tile size, name, exp2 or tanh is missing (see HasTypes)");
  static_assert(HasTileSizes<B>, "Backend: tile_q and tile_kv must be 32, 64 or 128");
  static_assert(HasHost<B>, "Backend: unavailable(), device() or scratch_bytes(problem) is missing or of another type");
  static_assert(HasLoad<B>, "Backend: load(context&, operand&, payload_plane, first, n) is missing or not callable");
  static_assert(HasStore<B>, "Backend: store(context&, tensor, offset, accum&, n) is missing or not callable");
  static_assert(HasAccumulate<B>,
                "Backend: accumulate(context&, float*, stride, accum&, n) is missing or not callable");
  static_assert(HasInOrder<B>, "Backend: in_order(context&, int32_t*, number, f) is missing or not callable");
  static_assert(HasMma<B>, "Backend: mma(context&, accum&, left operand&, right operand&) is missing or not callable");
  static_assert(HasConvert<B>, "Backend: convert(context&, operand&, accum&) is missing or not callable");
  static_assert(HasQuantize<B>,
                "Backend: quantize(context&, operand&, descale&, accum&, f, vectors...) is missing or not callable");
  static_assert(HasTransform<B>,
                "Backend: fill or transform(context&, accum&, f, vectors...) is missing or not callable");
  static_assert(HasCombine<B>, "Backend: combine(context&, accum&, accum&, f, vectors...) is missing or not callable");
  static_assert(HasReductions<B>,
                "Backend: row_max or row_sum(context&, row_vector&, accum&, f, vectors...) is missing or not callable");
  static_assert(HasRows<B>, "Backend: load_rows, transform_rows or for_rows is missing or not callable");
  static_assert(HasSync<B>, "Backend: sync(context&) is missing or not callable");
  static constexpr bool value = Backend<B>;
};

OCTAVO_END_NAMESPACE
