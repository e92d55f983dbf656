// SPDX-License-Identifier: Apache-2.0
// The folder that results go to. Files appear under their names all together when everything is written, or not at all.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "exit.hpp"
#include "support/npy.hpp"

namespace cli {

class output_folder {
 public:
  /// Creates the folder, its parents too. Whether it can be written to is found out here, before anything is computed.
  output_folder(const std::string& option, const std::string& path) : folder_(path) {
    std::error_code failure;
    created_ = std::filesystem::create_directories(folder_, failure);
    if (std::error_code ignored; !std::filesystem::is_directory(folder_, ignored))
      bad_input(option + " " + path + ": cannot be created" + (failure ? ": " + failure.message() : ""));
    const std::filesystem::path probe = temporary_path("probe");
    const bool writable = static_cast<bool>(std::ofstream(probe));
    std::filesystem::remove(probe, failure);
    if (!writable) bad_input(option + " " + path + ": the folder cannot be written to");
  }
  /// Without a commit, nothing stays behind.
  ~output_folder() {
    std::error_code ignored;
    for (const auto& [temporary, name] : files_) std::filesystem::remove(temporary, ignored);
    if (created_ && std::filesystem::is_empty(folder_, ignored)) std::filesystem::remove(folder_, ignored);
  }
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;

  /// The path under which to write the file that will be called `name`.
  std::string add(const std::string& name) {
    if (std::error_code ignored; std::filesystem::is_directory(folder_ / name, ignored))
      bad_input((folder_ / name).string() + " is a folder, but a result has that name");
    files_.emplace_back(temporary_path(name), name);
    return files_.back().first.string();
  }
  void add_array(const std::string& name, npy::dtype type, const npy::extents& shape, const void* data) {
    try {
      npy::write(add(name), type, shape, data);
    } catch (const npy::error& e) {
      failed(e.what());
    }
  }
  void add_text(const std::string& name, const std::string& content) {
    std::ofstream file(add(name));
    file << content;
    file.close();
    if (!file) failed((folder_ / name).string() + ": cannot be written");
  }
  /// Takes a file back that was not written after all.
  void drop(const std::string& name) {
    std::erase_if(files_, [&](const auto& file) { return file.second == name; });
  }
  /// The names so far.
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& file : files_) out.push_back(file.second);
    return out;
  }

  void commit() {
    for (const auto& [temporary, name] : files_) {
      std::error_code failure;
      std::filesystem::rename(temporary, folder_ / name, failure);
      if (failure) failed((folder_ / name).string() + ": cannot be put in place: " + failure.message());
    }
    files_.clear();
  }

 private:
  std::filesystem::path temporary_path(const std::string& name) const {
    return folder_ / ("." + name + "." + std::to_string(getpid()) + ".tmp");
  }

  std::filesystem::path folder_;
  bool created_ = false;
  std::vector<std::pair<std::filesystem::path, std::string>> files_;  ///< temporary path, final name
};

}  // namespace cli
