// SPDX-License-Identifier: Apache-2.0
// The same headers and configs in two translation units: nothing may be defined twice, and both see the same functions.
#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

using fp8 = octavo::config<octavo::backends::cpu, octavo::recipe::token, octavo::delta::matched>;

std::size_t workspace_elsewhere(const octavo::problem& p);

int main() {
  octavo::problem p;
  p.s_q = p.s_kv = 100;
  if (!octavo::supports<fp8>(p)) return 1;
  return octavo::workspace_size<fp8>(p) == workspace_elsewhere(p) ? 0 : 1;
}
