// SPDX-License-Identifier: Apache-2.0
// The smallest program that calls the library: one head of causal FP8 attention, forward and backward, on the CPU.
#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using octavo::bf16;
using engine = octavo::config<octavo::backends::cpu, octavo::recipe::token, octavo::delta::matched>;

void require(const octavo::status& s) {
  if (s) return;
  std::fprintf(stderr, "custom_engine: %s\n", s.message.c_str());
  std::exit(1);
}

int main() {
  octavo::problem p;
  p.s_q = p.s_kv = 300;
  p.d_qk = p.d_v = 64;
  p.element = octavo::dtype::bf16;
  p.mask.causal = octavo::causal_mask::top_left;
  if (const octavo::support s = octavo::supports<engine>(p); !s) {
    std::fprintf(stderr, "custom_engine: %s\n", s.reason.c_str());
    return 1;
  }

  // q, k, v, dO: [1, 300, 1, 64] of BF16.
  const std::size_t size = 300 * 64;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto tensor = [&] {
    std::vector<bf16> values(size);
    for (bf16& x : values) x = bf16::nearest_even(normal(random));
    return values;
  };
  const auto view = [](auto& values) { return octavo::contiguous(values.data(), 300, 1, 64); };
  const std::vector<bf16> q = tensor(), k = tensor(), v = tensor(), dout = tensor();
  std::vector<float> o(size), dq(size), dk(size), dv(size);
  std::vector<float> lse(300), m(300), l(300), row_sum(300), l1(300);

  // The library allocates nothing: scratch memory is the caller's.
  std::vector<char> scratch(octavo::workspace_size<engine>(p));
  const octavo::workspace workspace{scratch.data(), scratch.size()};
  octavo::backends::cpu::queue queue;

  octavo::forward_inputs forward{.q = view(q), .k = view(k), .v = view(v)};
  octavo::forward_outputs out{.o = view(o), .lse = lse.data(), .m = m.data(), .l = l.data()};
  require(octavo::attention_forward<engine>(queue, p, forward, out, workspace));

  // The backward takes the forward's row statistics; the matched delta reads no O.
  octavo::backward_inputs backward{.q = view(q), .k = view(k), .v = view(v), .dout = view(dout)};
  backward.m = m.data();
  backward.l = l.data();
  octavo::backward_outputs gradients{.dq = view(dq), .dk = view(dk), .dv = view(dv)};
  gradients.row_sum = row_sum.data();
  gradients.l1 = l1.data();
  require(octavo::attention_backward<engine>(queue, p, backward, gradients, workspace));

  // Softmax does not change when a row of S is shifted, so each row of dS sums to zero: here up to FP32 rounding.
  float worst = 0;
  for (int i = 0; i < 300; ++i)
    if (l1[i] > 0) worst = std::max(worst, std::abs(row_sum[i]) / l1[i]);
  double norm = 0;
  for (const float x : dq) norm += double(x) * x;
  std::printf("LSE of the last row  %.4f\n|dQ|                 %.4f\nmax |sum_j dS| / sum_j |dS|  %.1e\n", lse[299],
              std::sqrt(norm), worst);
  return worst < 1e-5f && std::isfinite(norm) ? 0 : 1;
}
