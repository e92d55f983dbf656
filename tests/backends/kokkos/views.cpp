// SPDX-License-Identifier: Apache-2.0
// What the calls that take Views say of Views that do not fit, and that strides of every layout with unit stride in d
// lead to the same bits.
#include <octavo/backends/kokkos/entry.hpp>
#include <octavo/backends/kokkos/view.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace {

using engine = octavo::config<octavo::backends::kokkos, octavo::recipe::token>;
using tokens = Kokkos::View<float****, Kokkos::LayoutRight>;
using strided = Kokkos::View<float****, Kokkos::LayoutStride>;
using rows = Kokkos::View<float***, Kokkos::LayoutRight>;
using space = Kokkos::DefaultHostExecutionSpace;

constexpr octavo::problem small{
    .b = 2, .h_q = 4, .h_kv = 2, .s_q = 40, .s_kv = 50, .d_qk = 32, .d_v = 32, .element = octavo::dtype::f32};

template <class View>
void fill(const View& x, int seed) {
  for (std::size_t b = 0; b < x.extent(0); ++b)
    for (std::size_t s = 0; s < x.extent(1); ++s)
      for (std::size_t h = 0; h < x.extent(2); ++h)
        for (std::size_t d = 0; d < x.extent(3); ++d)
          x(b, s, h, d) = static_cast<float>((b * 131 + s * 17 + h * 7 + d * 3 + seed) % 23) / 11.0f - 1.0f;
}

/// The tensors of the small problem, q, k and v as Tokens.
template <class Tokens>
struct attention {
  Tokens q, k, v;
  tokens o{"o", 2, 40, 4, 32};
  rows lse{"lse", 2, 4, 40}, m{"m", 2, 4, 40}, l{"l", 2, 4, 40};
  Kokkos::View<char*> workspace{"workspace", octavo::workspace_size<engine>(small)};

  octavo::forward_views<Tokens, Tokens, Tokens, tokens, rows> views() const { return {q, k, v, o, lse, m, l}; }
  std::string forward(const octavo::forward_views<Tokens, Tokens, Tokens, tokens, rows>& x) const {
    const octavo::status s = octavo::attention_forward<engine>(space(), small, x, workspace);
    Kokkos::fence();
    return std::string(s.message.view());
  }
};
attention<tokens> plain() {
  attention<tokens> a{tokens("q", 2, 40, 4, 32), tokens("k", 2, 50, 2, 32), tokens("v", 2, 50, 2, 32)};
  fill(a.q, 1), fill(a.k, 2), fill(a.v, 3);
  return a;
}

/// Kokkos begins with the first test and ends with the program.
struct with_kokkos {
  with_kokkos() { REQUIRE(octavo::backends::kokkos_detail::make_ready().empty()); }
};

}  // namespace

TEST_CASE_FIXTURE(with_kokkos, "kokkos: a View that does not fit is named, with what it is and what it should be") {
  const attention<tokens> a = plain();
  CHECK(a.forward(a.views()).empty());
  auto x = a.views();
  x.k = tokens("k", 2, 50, 4, 32);
  CHECK(a.forward(x) == "k is a View [2, 50, 4, 32], but the problem asks for [2, 50, 2, 32]");
  x = a.views();
  x.lse = rows("lse", 2, 40, 4);
  CHECK(a.forward(x) == "lse is a View [2, 40, 4], but the problem asks for [2, 4, 40]");
  x = a.views();
  x.v = tokens();
  CHECK(a.forward(x) == "v is missing");
}

TEST_CASE_FIXTURE(with_kokkos, "kokkos: a last extent that is not innermost is refused") {
  const Kokkos::View<float****, Kokkos::LayoutLeft> q("q", 2, 40, 4, 32);
  const attention<tokens> a = plain();
  const octavo::status s = octavo::attention_forward<engine>(
      space(), small, octavo::forward_views<decltype(q), tokens, tokens, tokens>{q, a.k, a.v, a.o}, a.workspace);
  CHECK(std::string(s.message.view()) ==
        "q must have stride 1 in its last extent, not 320: use Kokkos::LayoutRight or a subview of one");
}

TEST_CASE_FIXTURE(with_kokkos, "kokkos: strided Views [b, s, h, d] over memory [b, h, s, d] give the same bits") {
  const attention<tokens> a = plain();
  REQUIRE(a.forward(a.views()).empty());
  const auto heads_first = [](const std::string& name, std::size_t s, std::size_t h) {
    const tokens memory(name, 2, h, s, 32);
    return std::pair(memory, strided(memory.data(), Kokkos::LayoutStride(2, h * s * 32, s, 32, h, s * 32, 32, 1)));
  };
  const auto q = heads_first("q", 40, 4), k = heads_first("k", 50, 2), v = heads_first("v", 50, 2);
  attention<strided> b{q.second, k.second, v.second};
  fill(b.q, 1), fill(b.k, 2), fill(b.v, 3);
  REQUIRE(b.forward(b.views()).empty());
  CHECK(std::memcmp(a.o.data(), b.o.data(), a.o.size() * sizeof(float)) == 0);
}

TEST_CASE_FIXTURE(with_kokkos, "kokkos: packed documents are Views of rank 3") {
  octavo::problem p = small;
  p.packed = true, p.b = 2, p.total_q = p.total_kv = 90;
  p.s_q = p.s_kv = 50;
  const Kokkos::View<float***, Kokkos::LayoutRight> q("q", 90, 4, 32), k("k", 90, 2, 32), v("v", 90, 2, 32),
      o("o", 90, 4, 32);
  const Kokkos::View<std::int32_t*> offsets("offsets", 3);
  offsets(1) = 40, offsets(2) = 90;
  const Kokkos::View<char*> workspace("workspace", octavo::workspace_size<engine>(p));
  octavo::forward_inputs in;
  in.cu_seqlens_q = in.cu_seqlens_kv = octavo::offsets_of(offsets.data());
  const auto forward = [&](const auto& query) {
    const octavo::status s = octavo::attention_forward<engine>(
        space(), p, octavo::forward_views<decltype(query), decltype(k), decltype(v), decltype(o)>{query, k, v, o},
        workspace, in);
    Kokkos::fence();
    return std::string(s.message.view());
  };
  CHECK(forward(q).empty());
  CHECK(forward(tokens("q", 2, 45, 4, 32)) == "q is a View [2, 45, 4, 32], but the problem asks for [90, 4, 32]");
}
