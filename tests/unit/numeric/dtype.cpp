// SPDX-License-Identifier: Apache-2.0
#include <octavo/numeric/dtype.hpp>

#include <doctest/doctest.h>

#include <string>

using octavo::bytes_of;
using octavo::dtype;
using octavo::dtype_of_v;
using octavo::name_of;

static_assert(dtype_of_v<float> == dtype::f32 && dtype_of_v<octavo::fp16> == dtype::f16);
static_assert(dtype_of_v<octavo::bf16> == dtype::bf16);
static_assert(dtype_of_v<octavo::e4m3> == dtype::e4m3 && dtype_of_v<octavo::e5m2> == dtype::e5m2);

TEST_CASE_TEMPLATE("an element type and its dtype have one size", T, float, octavo::fp16, octavo::bf16, octavo::e4m3,
                   octavo::e5m2) {
  CHECK(bytes_of(dtype_of_v<T>) == static_cast<int>(sizeof(T)));
}

TEST_CASE("dtypes are named as on the command line") {
  CHECK(std::string(name_of(dtype::f32)) == "f32");
  CHECK(std::string(name_of(dtype::f16)) == "f16");
  CHECK(std::string(name_of(dtype::bf16)) == "bf16");
  CHECK(std::string(name_of(dtype::e4m3)) == octavo::e4m3::name);
  CHECK(std::string(name_of(dtype::e5m2)) == octavo::e5m2::name);
}
