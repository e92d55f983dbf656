// expect: d_qk and d_v of a head_dim must be 32, 64, 96, 128, 192 or 256
// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cpu/backend.hpp>

octavo::config<octavo::backends::cpu, octavo::recipe::token, octavo::delta::matched, octavo::head_dim<48>> wrong;
