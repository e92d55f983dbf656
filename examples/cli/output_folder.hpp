// SPDX-License-Identifier: Apache-2.0
// The folder that results go to. Files appear under their names all together when everything is written, or not at all.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "support/npy.hpp"

namespace cli {

/// A folder with its parents. Those that had to be created go away again with this object, unless they are kept.
class created_folders {
 public:
  /// What was created before a failure goes away too. `failure` says why there is no such folder.
  created_folders(const std::filesystem::path& folder, std::error_code& failure);
  ~created_folders();
  created_folders(const created_folders&) = delete;
  created_folders& operator=(const created_folders&) = delete;

  void keep() { created_.clear(); }

 private:
  std::vector<std::filesystem::path> created_;  ///< the deepest first
};

class output_folder {
 public:
  /// Creates the folder. `names` are all that this kind of run may write: whether each can be put in place is found out
  /// here, before anything is computed.
  output_folder(const std::string& option, const std::string& path, std::vector<std::string> names);
  /// Without a commit, nothing stays behind.
  ~output_folder();
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;

  /// The path under which to write the file that will be called `name`.
  std::string add(const std::string& name);
  void add_array(const std::string& name, npy::dtype type, const npy::extents& shape, const void* data);
  void add_text(const std::string& name, const std::string& content);
  /// Takes a file back that was not written after all.
  void drop(const std::string& name);
  /// The names so far.
  std::vector<std::string> names() const;
  /// Where a file will stand, for messages.
  std::string final_path(const std::string& name) const { return (folder_ / name).string(); }

  /// Puts every file in place. Of `names`, those that this run did not write are removed: they would be results of
  /// another run beside this one's report.
  void commit();

 private:
  std::filesystem::path temporary_path(std::size_t number) const;

  std::filesystem::path folder_;
  std::vector<std::string> names_;
  std::error_code failure_;
  created_folders created_;
  std::vector<std::pair<std::filesystem::path, std::string>> files_;  ///< temporary path, final name
};

}  // namespace cli
