// SPDX-License-Identifier: Apache-2.0
// Words of the command line as numbers: what a person or a script may write, and nothing that only begins like one.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

/// from_chars takes no plus sign.
inline std::string_view without_plus(std::string_view word) {
  if (word.size() > 1 && word[0] == '+' && word[1] != '-') word.remove_prefix(1);
  return word;
}

inline std::optional<std::int64_t> integer_of(std::string_view word) {
  word = without_plus(word);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

/// A finite float. The word is read as a double and then narrowed, so that 1e-50 is 0 and no error.
inline std::optional<float> real_of(std::string_view word) {
  word = without_plus(word);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error == std::errc::invalid_argument || end != word.data() + word.size()) return std::nullopt;
  // Out of range is too small as well as too large; from_chars does not say which, strtod does.
  if (error == std::errc::result_out_of_range) number = std::strtod(std::string(word).c_str(), nullptr);
  if (!(std::fabs(number) <= double{std::numeric_limits<float>::max()})) return std::nullopt;
  return static_cast<float>(number);
}

/// Integers separated by commas; blanks may follow a comma.
inline std::optional<std::vector<std::int64_t>> integers_of(std::string_view words) {
  std::vector<std::int64_t> out;
  for (;;) {
    const std::size_t end = words.find(',');
    const auto number = integer_of(words.substr(0, end));
    if (!number) return std::nullopt;
    out.push_back(*number);
    if (end == std::string_view::npos) return out;
    words.remove_prefix(end + 1);
    while (words.starts_with(' ')) words.remove_prefix(1);
  }
}

}  // namespace cli
