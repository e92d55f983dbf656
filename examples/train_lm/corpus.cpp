// SPDX-License-Identifier: Apache-2.0
#include "corpus.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iterator>

#include "errors.hpp"

namespace train_lm {
namespace {

constexpr std::size_t most_windows = 64;      // enough for a mean with an error well below the seed noise
constexpr std::size_t windows_per_block = 4;  // a block is long, so that little text is torn apart

double entropy(const std::vector<std::uint8_t>& text) {
  std::array<std::size_t, 256> count{};
  for (const std::uint8_t byte : text) ++count[byte];
  double sum = 0;
  for (const std::size_t c : count)
    if (c > 0) {
      const double p = static_cast<double>(c) / static_cast<double>(text.size());
      sum -= p * std::log(p);
    }
  return sum;
}

void append_file(const std::filesystem::path& path, std::vector<std::uint8_t>& text) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw input_error("cannot read the text " + path.string());
  text.insert(text.end(), std::istreambuf_iterator<char>(file), {});
}

/// Devices and pipes need not end, and a folder is read as nothing at all.
void require_text_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  const auto refuse = [&path](const std::string& why) { throw input_error("--text: " + path.string() + " " + why); };
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) refuse("does not exist");
  if (failed) refuse("cannot be examined: " + failed.message());
  if (fs::is_directory(status)) refuse("is a folder; allowed: a regular file");
  if (!fs::is_regular_file(status)) refuse("is a device, a pipe or a socket; allowed: a regular file");
  constexpr std::uintmax_t most = 1 << 30;
  if (const auto size = fs::file_size(path, failed); !failed && size > most)
    refuse("has " + std::to_string(size) + " bytes; allowed: up to " + std::to_string(most));
}

}  // namespace

corpus::corpus(std::vector<std::uint8_t> text, index context) : bytes_(text.size()), unigram_entropy_(entropy(text)) {
  const auto window = static_cast<std::size_t>(context) + 1;  // the last target stands one behind the last token
  const std::size_t block = windows_per_block * window, blocks = text.size() / block;
  for (std::size_t i = 0; i < blocks; ++i) {
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(i * block);
    if (i % 10 != 9) {
      train_.insert(train_.end(), begin, begin + static_cast<std::ptrdiff_t>(block));
      continue;
    }
    for (std::size_t w = 0; w < windows_per_block; ++w) {
      const auto from = begin + static_cast<std::ptrdiff_t>(w * window);
      windows_.emplace_back(from, from + static_cast<std::ptrdiff_t>(window));
    }
  }
  if (windows_.empty())
    throw input_error("the text has " + std::to_string(text.size()) + " bytes; a context of " +
                      std::to_string(context) + " needs at least " + std::to_string(10 * block));
  if (windows_.size() > most_windows) {  // spread evenly over the text
    std::vector<std::vector<std::uint8_t>> spread;
    for (std::size_t i = 0; i < most_windows; ++i)
      spread.push_back(std::move(windows_[i * windows_.size() / most_windows]));
    windows_ = std::move(spread);
  }
}

// A window may run over the seam that a held-out block left: a change of topic, like those between files.
void corpus::draw(random_source& random, const model_shape& shape, batch& out) const {
  out.tokens.clear();
  out.targets.clear();
  for (index i = 0; i < shape.batch; ++i) {
    const auto from = train_.begin() + static_cast<std::ptrdiff_t>(
                                           random.below(train_.size() - static_cast<std::size_t>(shape.context)));
    out.tokens.insert(out.tokens.end(), from, from + shape.context);
    out.targets.insert(out.targets.end(), from + 1, from + shape.context + 1);
  }
}

std::vector<batch> corpus::held_out(const model_shape& shape) const {
  std::vector<batch> batches;
  const auto rows = static_cast<std::size_t>(shape.batch);
  if (windows_.size() < rows)
    throw input_error("the text has " + std::to_string(windows_.size()) +
                      " held-out windows, fewer than the batch of " + std::to_string(rows));
  for (std::size_t i = 0; i + rows <= windows_.size(); i += rows) {
    batch& b = batches.emplace_back();
    for (std::size_t r = i; r < i + rows; ++r) {
      b.tokens.insert(b.tokens.end(), windows_[r].begin(), windows_[r].end() - 1);
      b.targets.insert(b.targets.end(), windows_[r].begin() + 1, windows_[r].end());
    }
  }
  return batches;
}

std::vector<std::uint8_t> read_text(const std::filesystem::path& file) {
  std::vector<std::uint8_t> text;
  if (!file.empty()) {
    require_text_file(file);
    append_file(file, text);
    return text;
  }
  const std::filesystem::path licences = "/usr/share/common-licenses";
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(licences, ignored))
    // Links are second names of files that are there already.
    if (!entry.is_symlink() && entry.is_regular_file()) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const auto& path : files) append_file(path, text);
  if (text.empty()) throw input_error("no text: " + licences.string() + " has no files here; give --text FILE");
  return text;
}

}  // namespace train_lm
