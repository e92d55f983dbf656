// SPDX-License-Identifier: Apache-2.0
// FP8 attention on Kokkos Views: forward and backward on an execution-space instance, and the same on the reference
// backend to compare with.
#include <octavo/attention.hpp>
#include <octavo/backends/kokkos/view.hpp>
#include <octavo/backends/reference/backend.hpp>

#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

template <class Backend>
using fp8 = octavo::config<Backend, octavo::recipe::token, octavo::delta::matched>;
using engine = fp8<octavo::backends::kokkos>;

using tokens = Kokkos::View<float****, Kokkos::LayoutRight>;  // [b, s, h, d]
using rows = Kokkos::View<float***, Kokkos::LayoutRight>;     // [b, h, s]

void require(const octavo::status& s) {
  if (s) return;
  std::fprintf(stderr, "kokkos_views: %s\n", s.message.c_str());
  std::exit(1);
}

tokens random_tokens(const std::string& name, std::int64_t s, std::int64_t h, std::int64_t d, unsigned seed) {
  const tokens x(name, 1, s, h, d);
  const auto on_host = Kokkos::create_mirror_view(x);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < on_host.size(); ++i) on_host.data()[i] = normal(random);
  Kokkos::deep_copy(x, on_host);
  return x;
}

/// |x - y| / |y|.
double relative_error(const tokens& x, const tokens& y) {
  const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x);
  const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double e = double{a.data()[i]} - b.data()[i];
    difference += e * e, norm += double{b.data()[i]} * b.data()[i];
  }
  return std::sqrt(difference / norm);
}

/// What a pass computes.
struct gradients {
  tokens o, dq, dk, dv;
  explicit gradients(const octavo::problem& p)
      : o("o", p.b, p.s_q, p.h_q, p.d_v),
        dq("dq", p.b, p.s_q, p.h_q, p.d_qk),
        dk("dk", p.b, p.s_kv, p.h_kv, p.d_qk),
        dv("dv", p.b, p.s_kv, p.h_kv, p.d_v) {}
};

/// The same on whole matrices in float64, on the host.
gradients reference(const octavo::problem& p, const tokens& q, const tokens& k, const tokens& v, const tokens& dout) {
  using truth = fp8<octavo::backends::reference>;
  const auto copy = [](const tokens& x) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x); };
  const auto q_host = copy(q), k_host = copy(k), v_host = copy(v), dout_host = copy(dout);
  const gradients result(p);
  const auto o = copy(result.o), dq = copy(result.dq), dk = copy(result.dk), dv = copy(result.dv);
  const auto view = [](const auto& x) {
    return octavo::contiguous(x.data(), static_cast<std::int64_t>(x.extent(1)), static_cast<std::int64_t>(x.extent(2)),
                              static_cast<std::int64_t>(x.extent(3)));
  };
  const Kokkos::View<float***, Kokkos::LayoutRight, Kokkos::HostSpace> m("m", p.b, p.h_q, p.s_q),
      l("l", p.b, p.h_q, p.s_q);

  octavo::backends::reference::queue queue;
  octavo::forward_outputs out{.o = view(o), .m = m.data(), .l = l.data()};
  require(octavo::attention_forward<truth>(queue, p, {view(q_host), view(k_host), view(v_host)}, out, {}));
  octavo::backward_inputs in{.q = view(q_host), .k = view(k_host), .v = view(v_host), .dout = view(dout_host)};
  in.m = m.data(), in.l = l.data();
  require(octavo::attention_backward<truth>(queue, p, in, {view(dq), view(dk), view(dv)}, {}));

  Kokkos::deep_copy(result.o, o);
  Kokkos::deep_copy(result.dq, dq);
  Kokkos::deep_copy(result.dk, dk);
  Kokkos::deep_copy(result.dv, dv);
  return result;
}

int main(int argc, char* argv[]) {
  const Kokkos::ScopeGuard kokkos(argc, argv);

  octavo::problem p;
  p.h_q = 4, p.h_kv = 2;
  p.s_q = p.s_kv = 200;
  p.d_qk = p.d_v = 64;
  p.element = octavo::dtype::f32;
  p.mask.causal = octavo::causal_mask::top_left;
  if (const octavo::support s = octavo::supports<engine>(p); !s) {
    std::fprintf(stderr, "kokkos_views: %s\n", s.reason.c_str());
    return 1;
  }

  const tokens q = random_tokens("q", p.s_q, p.h_q, p.d_qk, 1), k = random_tokens("k", p.s_kv, p.h_kv, p.d_qk, 2),
               v = random_tokens("v", p.s_kv, p.h_kv, p.d_v, 3), dout = random_tokens("dout", p.s_q, p.h_q, p.d_v, 4);
  const rows lse("lse", p.b, p.h_q, p.s_q), m("m", p.b, p.h_q, p.s_q), l("l", p.b, p.h_q, p.s_q);
  const gradients mine(p);
  const Kokkos::View<char*> workspace("workspace", octavo::workspace_size<engine>(p));

  // Both calls are enqueued on the instance, in order; nothing is copied behind its back.
  const Kokkos::DefaultExecutionSpace space;
  require(octavo::attention_forward<engine>(
      space, p, octavo::forward_views{.q = q, .k = k, .v = v, .o = mine.o, .lse = lse, .m = m, .l = l}, workspace));
  require(octavo::attention_backward<engine>(
      space, p,
      octavo::backward_views{
          .q = q, .k = k, .v = v, .dout = dout, .m = m, .l = l, .dq = mine.dq, .dk = mine.dk, .dv = mine.dv},
      workspace));
  space.fence();

  const gradients truth = reference(p, q, k, v, dout);
  std::printf("%s\nrelative difference from the reference backend:\n", octavo::backends::kokkos::device().c_str());
  bool close = true;
  const auto compare = [&](const char* name, const tokens& x, const tokens& y) {
    const double error = relative_error(x, y);
    std::printf("  %-3s %.1e\n", name, error);
    close = close && error < 1e-3;
  };
  compare("O", mine.o, truth.o);
  compare("dQ", mine.dq, truth.dq);
  compare("dK", mine.dk, truth.dk);
  compare("dV", mine.dv, truth.dv);
  return close ? 0 : 1;
}
