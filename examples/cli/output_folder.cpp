// SPDX-License-Identifier: Apache-2.0
#include "output_folder.hpp"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

#include "exit.hpp"

namespace cli {
namespace {

namespace fs = std::filesystem;

/// A result replaces what has its name; a folder or a device cannot be, or must not be, replaced.
void require_replaceable(const fs::path& path) {
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (status.type() == fs::file_type::not_found || status.type() == fs::file_type::regular) return;
  if (status.type() == fs::file_type::none) bad_input(path.string() + ": cannot be written: " + failure.message());
  bad_input(path.string() + " is " + (status.type() == fs::file_type::directory ? "a folder" : "not a regular file") +
            ", but a result has that name");
}

}  // namespace

created_folders::created_folders(const fs::path& folder, std::error_code& failure) {
  std::error_code ignored;
  for (fs::path p = fs::absolute(folder); !p.empty() && !fs::exists(p, ignored); p = p.parent_path())
    created_.push_back(p);
  fs::create_directories(folder, failure);
}

created_folders::~created_folders() {
  std::error_code ignored;
  for (const fs::path& p : created_) fs::remove(p, ignored);  // a folder that is not empty stays
}

output_folder::output_folder(const std::string& option, const std::string& path, std::vector<std::string> names)
    : folder_(path), names_(std::move(names)), created_(folder_, failure_) {
  std::error_code ignored;
  if (!fs::is_directory(folder_, ignored))
    bad_input(option + " " + path + ": cannot be created" + (failure_ ? ": " + failure_.message() : ""));
  const fs::path probe = temporary_path(0);
  const bool writable = static_cast<bool>(std::ofstream(probe));
  fs::remove(probe, ignored);
  if (!writable) bad_input(option + " " + path + ": the folder cannot be written to");
  for (const std::string& name : names_) require_replaceable(folder_ / name);
}

output_folder::~output_folder() {
  std::error_code ignored;
  for (const auto& [temporary, name] : files_) fs::remove(temporary, ignored);
}

std::string output_folder::add(const std::string& name) {
  if (std::find(names_.begin(), names_.end(), name) == names_.end())
    throw std::logic_error(name + " is not among the names that this command writes");
  files_.emplace_back(temporary_path(files_.size() + 1), name);
  return files_.back().first.string();
}

void output_folder::add_array(const std::string& name, npy::dtype type, const npy::extents& shape, const void* data) {
  try {
    npy::write(add(name), type, shape, data);
  } catch (const npy::error& e) {
    failed(final_path(name) + ": " + e.reason);  // the path in e.what() is the temporary one
  }
}

void output_folder::add_text(const std::string& name, const std::string& content) {
  std::ofstream file(add(name));
  file << content;
  file.close();
  if (!file) failed(final_path(name) + ": cannot be written");
}

void output_folder::drop(const std::string& name) {
  std::erase_if(files_, [&](const auto& file) { return file.second == name; });
}

std::vector<std::string> output_folder::names() const {
  std::vector<std::string> out;
  for (const auto& file : files_) out.push_back(file.second);
  return out;
}

void output_folder::commit() {
  for (const auto& [temporary, name] : files_) {
    std::error_code failure;
    fs::rename(temporary, folder_ / name, failure);
    if (failure) failed(final_path(name) + ": cannot be put in place: " + failure.message());
  }
  const std::vector<std::string> written = names();
  files_.clear();
  created_.keep();
  for (const std::string& name : names_) {
    if (std::find(written.begin(), written.end(), name) != written.end()) continue;
    std::error_code failure;
    fs::remove(folder_ / name, failure);
    if (failure) failed(final_path(name) + ": of an earlier run, cannot be removed: " + failure.message());
  }
}

std::filesystem::path output_folder::temporary_path(std::size_t number) const {
  return folder_ / (".octavo-" + std::to_string(getpid()) + "-" + std::to_string(number) + ".tmp");
}

}  // namespace cli
