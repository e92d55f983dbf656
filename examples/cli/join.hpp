// SPDX-License-Identifier: Apache-2.0
// Words in a row, for lists in messages.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace cli {

/// "none" where there are no words.
inline std::string join(std::span<const std::string> words, std::string_view separator = ", ") {
  if (words.empty()) return "none";
  std::string out = words.front();
  for (const std::string& word : words.subspan(1)) out.append(separator).append(word);
  return out;
}

}  // namespace cli
