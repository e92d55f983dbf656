// SPDX-License-Identifier: Apache-2.0
// The conversions against tables made with another implementation (ml_dtypes): every code of the five 8-bit formats,
// and binary32 values at, beside and between the points where rounding turns.
#include <octavo/numeric/e4m3.hpp>
#include <octavo/numeric/e4m3fnuz.hpp>
#include <octavo/numeric/e5m2.hpp>
#include <octavo/numeric/e5m2fnuz.hpp>
#include <octavo/numeric/e8m0.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using octavo::detail::bit_cast;

// The fields of each line that is not a comment.
std::vector<std::vector<std::string>> read_csv(const std::string& name) {
  std::ifstream file(std::string(OCTAVO_TEST_SOURCE_DIR) + "/golden/" + name);
  REQUIRE_MESSAGE(file.good(), "cannot open golden/" << name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream fields(line);
    rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(field);
  }
  return rows;
}

std::uint32_t parse(const std::string& text, int base) {
  return static_cast<std::uint32_t>(std::stoul(text, nullptr, base));
}

// The bits of the value of a code, in the format that the table names.
std::uint32_t decode(const std::string& format, std::uint8_t code) {
  float value = 0;
  if (format == octavo::e4m3::name) {
    value = octavo::e4m3::decode(code);
  } else if (format == octavo::e5m2::name) {
    value = octavo::e5m2::decode(code);
  } else if (format == octavo::e4m3fnuz::name) {
    value = octavo::e4m3fnuz::decode(code);
  } else if (format == octavo::e5m2fnuz::name) {
    value = octavo::e5m2fnuz::decode(code);
  } else if (format == octavo::e8m0::name) {
    value = static_cast<float>(octavo::e8m0::from_bits(code));
  } else {
    FAIL("unknown format in the table: " << format);
  }
  return bit_cast<std::uint32_t>(value);
}

template <class T>
int encode(float x) {
  return T::template nearest_even<octavo::overflow::non_finite>(x).bits;
}

}  // namespace

TEST_CASE("every 8-bit code has the golden value") {
  int rows = 0;
  for (const auto& row : read_csv("fp8_decode.csv")) {
    REQUIRE(row.size() == 3);
    const auto code = static_cast<std::uint8_t>(parse(row[0], 10));
    CAPTURE(row[1]);
    CAPTURE(int{code});
    CHECK(decode(row[1], code) == parse(row[2], 16));
    ++rows;
  }
  CHECK(rows == 5 * 256);
}

TEST_CASE("every golden binary32 value has the golden codes") {
  int rows = 0;
  for (const auto& row : read_csv("fp8_encode.csv")) {
    REQUIRE(row.size() == 5);
    const float x = bit_cast<float>(parse(row[0], 16));
    CAPTURE(row[0]);
    CHECK(encode<octavo::e4m3>(x) == std::stoi(row[1]));
    CHECK(encode<octavo::e5m2>(x) == std::stoi(row[2]));
    CHECK(encode<octavo::e4m3fnuz>(x) == std::stoi(row[3]));
    CHECK(encode<octavo::e5m2fnuz>(x) == std::stoi(row[4]));
    ++rows;
  }
  CHECK(rows == 2632);
}
