// SPDX-License-Identifier: Apache-2.0
// Two shared libraries of one program, each with its own copy of Octavo for its own instruction set. If the linker
// merged them, both would report the same vectors.
#include <cmath>
#include <cstdio>
#include <string>

extern "C" float wide_library(std::string* device);
extern "C" float narrow_library(std::string* device);

int main() {
  std::string wide, narrow;
  const float a = wide_library(&wide), b = narrow_library(&narrow);
  std::printf("%s: %g\n%s: %g\n", wide.c_str(), static_cast<double>(a), narrow.c_str(), static_cast<double>(b));
  return std::abs(a - b) < 1e-5f && wide != narrow ? 0 : 1;
}
