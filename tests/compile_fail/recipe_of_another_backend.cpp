// expect: this backend does not compute this recipe
// SPDX-License-Identifier: Apache-2.0
#include <octavo/backends/cpu/backend.hpp>

octavo::config<octavo::backends::cpu, octavo::recipe::exact> wrong;
