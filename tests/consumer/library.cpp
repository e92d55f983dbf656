// SPDX-License-Identifier: Apache-2.0
// Half of a program: one shared library with its own copy of Octavo, compiled with its own flags.
#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

#include <string>
#include <vector>

using fp8 = octavo::config<octavo::backends::cpu, octavo::recipe::tile, octavo::delta::matched>;

extern "C" float LIBRARY_NAME(std::string* device) {
  *device = octavo::backends::cpu::device().c_str();
  octavo::problem p;
  p.s_q = p.s_kv = 70;
  p.element = octavo::dtype::f32;
  std::vector<float> x(70 * 64), o(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 37) * .03f - .5f;
  const octavo::const_tensor t = octavo::contiguous(static_cast<const float*>(x.data()), 70, 1, 64);
  std::vector<char> scratch(octavo::workspace_size<fp8>(p));
  octavo::backends::cpu::queue queue;
  const auto done = octavo::attention_forward<fp8>(queue, p, {t, t, t}, {octavo::contiguous(o.data(), 70, 1, 64)},
                                                   {scratch.data(), scratch.size()});
  return done.ok() ? o[5] : -1.0f;
}
