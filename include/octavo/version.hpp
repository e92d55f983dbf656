// SPDX-License-Identifier: Apache-2.0
// The version of the library, and the inline namespace that carries it into every symbol, so that two versions
// linked into one program do not share inline functions. CMake reads the three numbers from here.
#pragma once

#define OCTAVO_VERSION_MAJOR 0
#define OCTAVO_VERSION_MINOR 1
#define OCTAVO_VERSION_PATCH 0

#define OCTAVO_BEGIN_NAMESPACE \
  namespace octavo {           \
  inline namespace v0_1 {
#define OCTAVO_END_NAMESPACE \
  }                          \
  }
