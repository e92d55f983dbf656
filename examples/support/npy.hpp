// SPDX-License-Identifier: Apache-2.0
// Reads and writes NumPy's .npy files: format versions 1 to 3, C order, little-endian, six element types.
//
// A file is not trusted. Its size is known before anything is allocated, the header has to account for every byte of
// it, and whatever does not fit is an npy::error that names the file, what is wrong and what is allowed.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace npy {

static_assert(std::endian::native == std::endian::little, "npy.hpp copies little-endian data as it is");

enum class dtype { float32, float16, uint16, int32, int64, uint8 };

struct dtype_facts {
  dtype type;
  const char* name;
  const char* descr;  // as it stands in the header
  std::int64_t bytes;
};
inline constexpr dtype_facts dtypes[] = {{dtype::float32, "float32", "<f4", 4}, {dtype::float16, "float16", "<f2", 2},
                                         {dtype::uint16, "uint16", "<u2", 2},   {dtype::int32, "int32", "<i4", 4},
                                         {dtype::int64, "int64", "<i8", 8},     {dtype::uint8, "uint8", "|u1", 1}};
constexpr const dtype_facts& facts_of(dtype type) { return dtypes[static_cast<int>(type)]; }
constexpr const char* name_of(dtype type) { return facts_of(type).name; }

using extents = std::vector<std::int64_t>;

/// "[2, 128, 4, 64]"
inline std::string to_string(const extents& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

struct array {
  dtype type = dtype::float32;
  extents shape;
  std::vector<std::byte> data;

  std::int64_t size() const { return static_cast<std::int64_t>(data.size()) / facts_of(type).bytes; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data.data());
  }
};

struct error : std::runtime_error {
  error(const std::string& path, const std::string& what) : std::runtime_error(path + ": " + what), reason(what) {}
  std::string reason;  ///< what() without the path
};

namespace detail {

inline constexpr std::string_view magic = "\x93NUMPY";
inline constexpr std::size_t longest_header = 1 << 16;

struct header {
  std::optional<dtype> type;
  std::optional<bool> fortran_order;
  std::optional<extents> shape;
};

/// The header is a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class header_parser {
 public:
  header_parser(const std::string& path, std::string_view source, std::string_view allowed)
      : path_(path), rest_(source), allowed_("; allowed: " + std::string(allowed)) {}

  header parse() {
    header h;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !h.type)
        h.type = descr();
      else if (key == "fortran_order" && !h.fortran_order)
        h.fortran_order = boolean();
      else if (key == "shape" && !h.shape)
        h.shape = tuple();
      else
        fail("the header has an unknown or repeated key '" + key + "'");
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) fail("the header goes on after its dictionary");
    if (!h.type || !h.fortran_order || !h.shape) fail("the header must name descr, fortran_order and shape");
    return h;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw error(path_, what); }
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  char peek() {
    skip_space();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool accept(char c) {
    if (peek() != c || rest_.empty()) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("the header is no Python dictionary: '") + c + "' expected");
  }
  std::string quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("the header is no Python dictionary: a quoted string expected");
    const std::size_t end = rest_.find(quote, 1);
    if (end == std::string_view::npos) fail("the header has an unfinished string");
    const std::string inside(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return inside;
  }
  dtype descr() {
    if (peek() == '[') fail("structured elements" + allowed_);
    const std::string name = quoted();
    for (const dtype_facts& d : dtypes)
      if (name == d.descr) return d.type;
    if (name == "<u1") return dtype::uint8;
    if (!name.empty() && name[0] == '>') fail("big-endian elements '" + name + "'" + allowed_);
    if (name.starts_with("|O")) fail("Python objects as elements" + allowed_);
    fail("elements of type '" + name + "'" + allowed_);
  }
  bool boolean() {
    for (const bool value : {true, false})
      if (const std::string_view word = value ? "True" : "False"; peek() != '\0' && rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return value;
      }
    fail("fortran_order must be True or False");
  }
  extents tuple() {
    extents shape;
    expect('(');
    while (!accept(')')) {
      shape.push_back(extent());
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    if (shape.size() > 32) fail("a shape of more than 32 extents");
    return shape;
  }
  std::int64_t extent() {
    if (peek() == '-') fail("a negative extent in the shape");
    std::int64_t value = 0;
    const std::size_t before = rest_.size();
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, rest_[0] - '0', &value))
        fail("an extent in the shape that does not fit 64 bits");
      rest_.remove_prefix(1);
    }
    if (rest_.size() == before) fail("the shape must be a tuple of integers");
    return value;
  }

  const std::string& path_;
  std::string_view rest_;
  std::string allowed_;
};

/// Bytes that the shape of a file asks for. An array with a zero extent has none, so its other extents are not bounded
/// by the size of the file; loops over them still run, hence a limit of their own.
inline std::int64_t bytes_of(const std::string& path, const extents& shape, dtype type) {
  constexpr std::int64_t widest_empty = 1 << 20;
  std::int64_t product = 1;
  bool empty = false, overflow = false;
  for (const std::int64_t n : shape) {
    empty |= n == 0;
    overflow |= n != 0 && __builtin_mul_overflow(product, n, &product);
  }
  if (empty && (overflow || product > widest_empty))
    throw error(path, "no elements, but a shape of " + to_string(shape) + "; the other extents may multiply to " +
                          std::to_string(widest_empty) + " at most");
  if (empty) return 0;
  if (overflow || __builtin_mul_overflow(product, facts_of(type).bytes, &product))
    throw error(path, "a shape of " + to_string(shape) + ", which is more than 64 bits can count");
  return product;
}

}  // namespace detail

/// `allowed` names the element types that the caller can use, for the error about one that no caller can.
inline array read(const std::string& path,
                  std::string_view allowed = "float32, float16, uint16, int32, int64, uint8, little-endian") {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) throw error(path, "no such file");
  if (failed) throw error(path, "cannot be examined: " + failed.message());
  // Devices and pipes have no size that would bound what is read from them.
  if (!fs::is_regular_file(status)) throw error(path, "not a regular file; a .npy file is needed");
  const std::uint64_t file_size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) throw error(path, "cannot be opened for reading");

  const auto take = [&](void* into, std::size_t bytes) {
    file.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes));
    if (static_cast<std::size_t>(file.gcount()) != bytes) throw error(path, "truncated: the file ends early");
  };
  unsigned char preamble[8];
  if (file_size < sizeof preamble) throw error(path, "too short for a .npy file");
  take(preamble, sizeof preamble);
  if (std::memcmp(preamble, detail::magic.data(), detail::magic.size()) != 0)
    throw error(path, "not a .npy file: it does not begin with \\x93NUMPY");
  if (preamble[6] < 1 || preamble[6] > 3)
    throw error(path, ".npy version " + std::to_string(preamble[6]) + "; allowed: 1, 2, 3");
  const std::size_t length_bytes = preamble[6] == 1 ? 2 : 4;
  std::uint32_t header_bytes = 0;
  take(&header_bytes, length_bytes);
  const std::uint64_t data_begin = sizeof preamble + length_bytes + std::uint64_t{header_bytes};
  if (data_begin > file_size) throw error(path, "truncated: the file ends within its header");
  if (header_bytes > detail::longest_header) throw error(path, "a header of more than 64 KiB");
  std::string source(header_bytes, '\0');
  take(source.data(), source.size());

  detail::header h = detail::header_parser(path, source, allowed).parse();
  if (*h.fortran_order) throw error(path, "Fortran order; allowed: C order (numpy.ascontiguousarray)");
  const std::int64_t needed = detail::bytes_of(path, *h.shape, *h.type);
  const std::uint64_t present = file_size - data_begin;
  if (present != static_cast<std::uint64_t>(needed))
    throw error(path, (present < static_cast<std::uint64_t>(needed) ? "truncated: " : "trailing bytes: ") +
                          to_string(*h.shape) + " " + name_of(*h.type) + " needs " + std::to_string(needed) +
                          " bytes of data, the file has " + std::to_string(present));
  array out{*h.type, std::move(*h.shape), {}};
  out.data.resize(static_cast<std::size_t>(needed));
  take(out.data.data(), out.data.size());
  return out;
}

/// The bytes of the header for data of this type and shape (version 1.0, padded so that the data is aligned to 64).
inline std::string header_of(dtype type, const extents& shape) {
  std::string tuple = "(";
  for (const std::int64_t n : shape) tuple += std::to_string(n) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1) tuple.resize(tuple.size() - 2);
  std::string dictionary =
      std::string("{'descr': '") + facts_of(type).descr + "', 'fortran_order': False, 'shape': " + tuple + "), }";
  constexpr std::size_t preamble = 10, alignment = 64;
  while ((preamble + dictionary.size() + 1) % alignment != 0) dictionary += ' ';
  dictionary += '\n';
  std::string out(detail::magic);
  out += {'\1', '\0', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  return out + dictionary;
}

inline void write(const std::string& path, dtype type, const extents& shape, const void* data) {
  std::int64_t bytes = facts_of(type).bytes;
  for (const std::int64_t n : shape) bytes *= n;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const std::string header = header_of(type, shape);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(static_cast<const char*>(data), bytes);
  file.close();
  if (!file) throw error(path, "cannot be written: " + std::string(std::strerror(errno)));
}

}  // namespace npy
