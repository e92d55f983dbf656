// SPDX-License-Identifier: Apache-2.0
#include "output_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <stdexcept>
#include <unistd.h>

#include "errors.hpp"

namespace train_lm {
namespace {

namespace fs = std::filesystem;

std::string refusal(const fs::path& path, const std::string& why) { return "--out: " + path.string() + " " + why; }

/// Writes a whole file. Empty, or why it could not be.
std::string write(const fs::path& file, const std::string& content) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << content;
  out.close();
  return out ? "" : std::strerror(errno);
}

/// One byte, written and removed: what permissions promise, a full or read-only disk does not keep.
void probe(const fs::path& folder, const fs::path& name) {
  const std::string why = write(folder / name, "\n");
  std::error_code ignored;
  fs::remove(folder / name, ignored);
  if (!why.empty()) throw input_error(refusal(folder, "cannot be written to: " + why));
}

}  // namespace

output_folder::output_folder(const fs::path& folder, std::span<const std::string> names)
    : folder_(folder), staging_(folder / (".train_lm." + std::to_string(getpid()) + ".tmp")) {
  std::error_code failed;
  if (fs::exists(folder_, failed) && !fs::is_directory(folder_, failed))
    throw input_error(refusal(folder_, "is not a folder"));
  created_ = fs::create_directories(folder_, failed);
  if (failed) throw input_error(refusal(folder_, "cannot be created: " + failed.message()));
  try {
    std::set<fs::path> folders = {folder_};
    for (const std::string& name : names) {
      const fs::path file = folder_ / name, parent = file.parent_path();
      if (fs::is_directory(file, failed)) throw input_error(refusal(file, "is a folder, but a result has that name"));
      if (fs::is_directory(parent, failed))
        folders.insert(parent);
      else if (fs::exists(fs::symlink_status(parent, failed)))
        throw input_error(refusal(parent, "is not a folder, but results go into one of that name"));
    }
    for (const fs::path& f : folders) probe(f, staging_.filename());
  } catch (...) {
    if (created_) fs::remove(folder_, failed);
    throw;
  }
}

output_folder::~output_folder() {
  std::error_code ignored;
  fs::remove_all(staging_, ignored);
  if (created_ && fs::is_empty(folder_, ignored)) fs::remove(folder_, ignored);
}

std::string output_folder::add(const std::string& name) {
  const fs::path file = staging_ / name;
  fs::create_directories(file.parent_path());
  added_.push_back(name);
  return file.string();
}

void output_folder::leave_out(const std::string& name) {
  std::erase(added_, name);
  left_out_.push_back(name);
}

void output_folder::commit() {
  for (const std::string& name : added_) {
    fs::create_directories((folder_ / name).parent_path());
    fs::rename(staging_ / name, folder_ / name);
  }
  for (const std::string& name : left_out_) fs::remove(folder_ / name);
  added_.clear();
  left_out_.clear();
}

void write_text(const fs::path& file, const std::string& content) {
  if (const std::string why = write(file, content); !why.empty())
    throw std::runtime_error(file.string() + ": cannot be written: " + why);
}

}  // namespace train_lm
