// SPDX-License-Identifier: Apache-2.0
// The library for Kokkos users: calls that take Kokkos::View and an execution-space instance.
//
//     const octavo::status s = octavo::attention_forward<fp8>(
//         space, problem, octavo::forward_views{.q = q, .k = k, .v = v, .o = o, .lse = lse, .m = m, .l = l},
//         workspace);
//
// Tensors are Views [b, s, h, d] of any layout, or strided subviews, in which d has stride 1; packed documents are
// [total, h, d]. Row statistics are [b, h_q, s_q], packed [h_q, total_q], row after row. The workspace is a View of
// rank 1. The work is enqueued on the instance when a call returns: keep the Views until a fence.
#pragma once

#include <octavo/backends/kokkos/backend.hpp>

OCTAVO_BEGIN_NAMESPACE

/// lse, m and l may be left out; the backward takes m and l.
template <class Q, class K, class V, class O, class Rows = Kokkos::View<float***>>
struct forward_views {
  Q q;
  K k;
  V v;
  O o;
  Rows lse{}, m{}, l{};
};
template <class Q, class K, class V, class O, class Rows>
forward_views(Q, K, V, O, Rows, Rows, Rows) -> forward_views<Q, K, V, O, Rows>;

/// o is for the delta policies that read it: stale and consistent.
template <class Q, class K, class V, class DOut, class Rows, class DQ, class DK, class DV, class O = DOut>
struct backward_views {
  Q q;
  K k;
  V v;
  DOut dout;
  Rows m, l;
  DQ dq;
  DK dk;
  DV dv;
  O o{};
};

namespace backends::kokkos_detail {

/// Makes tensors of Views, and keeps the first thing that is wrong with one.
template <class Space>
class view_check {
 public:
  explicit view_check(const problem& p) : p_(p) {}

  template <class View>
  auto queries(const char* name, const View& x, std::int64_t d) {
    return bind(name, x, p_.s_q, p_.total_q, p_.h_q, d);
  }
  template <class View>
  auto keys(const char* name, const View& x, std::int64_t d) {
    return bind(name, x, p_.s_kv, p_.total_kv, p_.h_kv, d);
  }
  /// The library addresses statistics without strides, so they must follow one another.
  template <class View>
  auto statistics(const char* name, const View& x) {
    static_assert(std::is_same_v<std::remove_const_t<typename View::value_type>, float>,
                  "octavo: Views of lse, m and l hold float");
    const bool right =
        p_.packed ? has_extents(name, x, {p_.h_q, p_.total_q}) : has_extents(name, x, {p_.b, p_.h_q, p_.s_q});
    std::int64_t step = 1;
    for (int r = rank<View> - 1; right && r >= 0; --r) {
      if (x.extent(r) > 1 && stride(x, r) != step) fail(text(name) << " must be contiguous, its last extent innermost");
      step *= static_cast<std::int64_t>(x.extent(r));
    }
    return x.data();
  }
  status result() const { return result_; }

 private:
  template <class View>
  static constexpr int rank = static_cast<int>(View::rank);
  template <class View>
  static std::int64_t stride(const View& x, int r) {
    return static_cast<std::int64_t>(x.stride(r));
  }

  template <class View>
  auto bind(const char* name, const View& x, std::int64_t s, std::int64_t total, std::int64_t h, std::int64_t d) {
    using element = typename View::value_type;
    using value = std::remove_const_t<element>;
    static_assert(std::is_same_v<value, float> || std::is_same_v<value, fp16> || std::is_same_v<value, bf16>,
                  "octavo: Views of tensors hold float, octavo::fp16 or octavo::bf16");
    std::conditional_t<std::is_const_v<element>, const_tensor, tensor> t;
    const bool right = p_.packed ? has_extents(name, x, {total, h, d}) : has_extents(name, x, {p_.b, s, h, d});
    if (!right) return t;
    constexpr int last = rank<View> - 1;
    if (stride(x, last) != 1)
      fail(text(name) << " must have stride 1 in its last extent, not " << stride(x, last)
                      << ": use Kokkos::LayoutRight or a subview of one");
    t.data = x.data();
    t.type = dtype_of<value>::value;
    if constexpr (last >= 2) t.stride_h = stride(x, last - 1), t.stride_s = stride(x, last - 2);
    if constexpr (last >= 3) t.stride_b = stride(x, last - 3);
    return t;
  }

  /// An unallocated View is an absent tensor, about which the library has its own say.
  template <class View, std::size_t N>
  bool has_extents(const char* name, const View& x, const std::int64_t (&wanted)[N]) {
    static_assert(Kokkos::is_view<View>::value, "octavo: this argument is a Kokkos::View");
    static_assert(Kokkos::SpaceAccessibility<Space, typename View::memory_space>::accessible,
                  "octavo: the execution space of the config cannot read the memory space of this View");
    if (x.data() == nullptr) return false;
    constexpr int given = rank<View>, asked = static_cast<int>(N);
    bool equal = given == asked;
    text is, should_be;
    for (int r = 0; r < given; ++r) is << (r == 0 ? "[" : ", ") << static_cast<long long>(x.extent(r));
    for (int r = 0; r < asked; ++r) should_be << (r == 0 ? "[" : ", ") << wanted[r];
    for (int r = 0; r < given && r < asked; ++r) equal = equal && static_cast<std::int64_t>(x.extent(r)) == wanted[r];
    if (!equal)
      fail(text(name) << " is a View " << is.view() << "], but the problem asks for " << should_be.view() << "]");
    return equal;
  }
  void fail(const text& why) {
    if (result_.ok()) result_ = {status_code::invalid_argument, why};
  }

  const problem& p_;
  status result_;
};

template <class View>
workspace workspace_of(const View& x) {
  static_assert(static_cast<int>(View::rank) == 1, "octavo: the workspace is a View of rank 1");
  return {x.data(), x.size() * sizeof(typename View::value_type)};
}

}  // namespace backends::kokkos_detail

/// The forward on Views. What has no View here (offsets, sink, payloads) goes into `in` and `out`, as in every call.
template <class Config, class Q, class K, class V, class O, class Rows, class Workspace>
status attention_forward(const typename Config::backend::execution_space& space, const problem& p,
                         const forward_views<Q, K, V, O, Rows>& x, const Workspace& scratch, forward_inputs in = {},
                         forward_outputs out = {}) {
  backends::kokkos_detail::view_check<typename Config::backend::execution_space> check(p);
  in.q = check.queries("q", x.q, p.d_qk);
  in.k = check.keys("k", x.k, p.d_qk);
  in.v = check.keys("v", x.v, p.d_v);
  out.o = check.queries("o", x.o, p.d_v);
  out.lse = check.statistics("lse", x.lse);
  out.m = check.statistics("m", x.m);
  out.l = check.statistics("l", x.l);
  if (const status s = check.result(); !s) return s;
  typename Config::backend::queue queue(space);
  return attention_forward<Config>(queue, p, in, out, backends::kokkos_detail::workspace_of(scratch));
}

/// The backward on Views.
template <class Config, class Q, class K, class V, class DOut, class Rows, class DQ, class DK, class DV, class O,
          class Workspace>
status attention_backward(const typename Config::backend::execution_space& space, const problem& p,
                          const backward_views<Q, K, V, DOut, Rows, DQ, DK, DV, O>& x, const Workspace& scratch,
                          backward_inputs in = {}, backward_outputs out = {}) {
  backends::kokkos_detail::view_check<typename Config::backend::execution_space> check(p);
  in.q = check.queries("q", x.q, p.d_qk);
  in.k = check.keys("k", x.k, p.d_qk);
  in.v = check.keys("v", x.v, p.d_v);
  in.dout = check.queries("dout", x.dout, p.d_v);
  in.o = check.queries("o", x.o, p.d_v);
  in.m = check.statistics("m", x.m);
  in.l = check.statistics("l", x.l);
  out.dq = check.queries("dq", x.dq, p.d_qk);
  out.dk = check.keys("dk", x.dk, p.d_qk);
  out.dv = check.keys("dv", x.dv, p.d_v);
  if (const status s = check.result(); !s) return s;
  typename Config::backend::queue queue(space);
  return attention_backward<Config>(queue, p, in, out, backends::kokkos_detail::workspace_of(scratch));
}

OCTAVO_END_NAMESPACE
