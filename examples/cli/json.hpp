// SPDX-License-Identifier: Apache-2.0
// Writes JSON, for reports: objects, arrays and values in the order in which they are given.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace cli {

class json_writer {
 public:
  json_writer& begin_object(std::string_view key = {}) { return open(key, '{'); }
  json_writer& end_object() { return close('}'); }
  json_writer& begin_array(std::string_view key = {}) { return open(key, '['); }
  json_writer& end_array() { return close(']'); }

  json_writer& value(std::string_view key, std::string_view v) { return put(key, quoted(v)); }
  json_writer& value(std::string_view key, const char* v) { return put(key, quoted(v)); }
  json_writer& value(std::string_view key, bool v) { return put(key, v ? "true" : "false"); }
  json_writer& value(std::string_view key, std::int64_t v) { return put(key, std::to_string(v)); }
  json_writer& value(std::string_view key, int v) { return put(key, std::to_string(v)); }
  /// JSON has no NaN and no infinity: they become null.
  json_writer& value(std::string_view key, double v) {
    if (!std::isfinite(v)) return null(key);
    char digits[40];
    std::snprintf(digits, sizeof digits, "%.9g", v);
    return put(key, digits);
  }
  json_writer& null(std::string_view key) { return put(key, "null"); }
  json_writer& list(std::string_view key, std::span<const std::string> items) {
    begin_array(key);
    for (const std::string& item : items) put({}, quoted(item));
    return end_array();
  }

  std::string text() const { return out_ + "\n"; }

 private:
  json_writer& put(std::string_view key, std::string_view written) {
    if (!first_) out_ += ',';
    if (depth_ > 0) out_ += '\n' + std::string(2 * static_cast<std::size_t>(depth_), ' ');
    if (!key.empty()) out_ += quoted(key) + ": ";
    out_ += written;
    first_ = false;
    return *this;
  }
  json_writer& open(std::string_view key, char bracket) {
    put(key, std::string_view(&bracket, 1));
    ++depth_;
    first_ = true;
    return *this;
  }
  json_writer& close(char bracket) {
    --depth_;
    if (!first_) out_ += '\n' + std::string(2 * static_cast<std::size_t>(depth_), ' ');
    out_ += bracket;
    first_ = false;
    return *this;
  }
  static std::string quoted(std::string_view s) {
    std::string out = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (static_cast<unsigned char>(c) < 0x20) {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += escaped;
      } else {
        out += c;
      }
    }
    return out + '"';
  }

  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace cli
