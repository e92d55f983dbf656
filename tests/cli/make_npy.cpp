// SPDX-License-Identifier: Apache-2.0
// Makes and inspects .npy files for run.sh, so that the tests of the program need no Python.
//
//     make_npy FILE DTYPE SHAPE SEED        random normal numbers ("f32", "f16", "bf16"; SHAPE "2,16,4,32")
//     make_npy FILE DTYPE SHAPE =V[,V...]   these values, repeated ("i32", "i64", "u8" too; V may be nan or inf)
//     make_npy show FILE                    dtype, shape, and "zeros" or the number of elements that are not finite
//     make_npy differ FILE FILE             the largest difference of two float32 files
#include <octavo/numeric/bf16.hpp>
#include <octavo/numeric/fp16.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/npy.hpp"

namespace {

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

template <class T>
void append(std::vector<std::byte>& to, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  to.insert(to.end(), bytes, bytes + sizeof value);
}

void append(npy::array& to, const std::string& type, double x) {
  const auto f = static_cast<float>(x);
  if (type == "f32") append(to.data, f);
  if (type == "f16") append(to.data, octavo::fp16::nearest_even(f).bits);
  if (type == "bf16") append(to.data, octavo::bf16::nearest_even(f).bits);
  if (type == "i32") append(to.data, static_cast<std::int32_t>(x));
  if (type == "i64") append(to.data, static_cast<std::int64_t>(x));
  if (type == "u8") append(to.data, static_cast<std::uint8_t>(x));
}

npy::dtype stored_type(const std::string& type) {
  if (type == "f16") return npy::dtype::float16;
  if (type == "bf16") return npy::dtype::uint16;
  if (type == "i32") return npy::dtype::int32;
  if (type == "i64") return npy::dtype::int64;
  return type == "u8" ? npy::dtype::uint8 : npy::dtype::float32;
}

void make(const std::string& path, const std::string& type, const std::string& shape, const std::string& content) {
  npy::array a{stored_type(type), {}, {}};
  std::int64_t count = 1;
  for (const std::string& extent : split(shape)) {
    a.shape.push_back(std::atoll(extent.c_str()));
    count *= a.shape.back();
  }
  if (content[0] == '=') {
    const std::vector<std::string> values = split(content.substr(1));
    for (std::int64_t i = 0; i < count; ++i)
      append(a, type, std::strtod(values[static_cast<std::size_t>(i) % values.size()].c_str(), nullptr));
  } else {
    std::mt19937 engine(static_cast<unsigned>(std::atoi(content.c_str())));
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < count; ++i) append(a, type, normal(engine));
  }
  npy::write(path, a.type, a.shape, a.data.data());
}

void show(const std::string& path) {
  const npy::array a = npy::read(path);
  std::printf("%s %s", npy::name_of(a.type), npy::to_string(a.shape).c_str());
  if (a.type == npy::dtype::float32) {
    int wild = 0;
    bool zeros = true;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      wild += !std::isfinite(a.as<float>()[i]);
      zeros &= a.as<float>()[i] == 0;
    }
    std::printf(zeros ? " zeros" : " %d not finite", wild);
  }
  std::printf("\n");
}

void differ(const std::string& left, const std::string& right) {
  const npy::array a = npy::read(left), b = npy::read(right);
  if (a.shape != b.shape) throw npy::error(left, "shapes differ");
  double largest = 0;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (const float x = a.as<float>()[i], y = b.as<float>()[i]; x != y) {
      const double e = std::fabs(double{x} - double{y});
      if (!(e <= largest)) largest = e;
    }
  std::printf("%g\n", largest);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() == 2 && words[0] == "show")
      show(words[1]);
    else if (words.size() == 3 && words[0] == "differ")
      differ(words[1], words[2]);
    else if (words.size() == 4)
      make(words[0], words[1], words[2], words[3]);
    else
      return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
