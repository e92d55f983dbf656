// SPDX-License-Identifier: Apache-2.0
#include <octavo/attention.hpp>
#include <octavo/backends/cpu/backend.hpp>

using fp8 = octavo::config<octavo::backends::cpu, octavo::recipe::token, octavo::delta::matched>;

std::size_t workspace_elsewhere(const octavo::problem& p) { return octavo::workspace_size<fp8>(p); }
