// SPDX-License-Identifier: Apache-2.0
// The folder that results go to. Whether it can be written to is found out before the training; the results of an
// earlier job stay until all of this one's are written, and are then replaced file by file.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace train_lm {

class output_folder {
 public:
  /// Creates the folder, its parents too, and tries to write where each of `names` will stand (below the folder, or in
  /// a folder of it). Throws input_error.
  output_folder(const std::filesystem::path& folder, std::span<const std::string> names);
  /// Without a commit, nothing of this job stays behind.
  ~output_folder();
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;

  /// Where to write the file that will be called `name`.
  std::string add(const std::string& name);
  /// A file of that name will not be there: neither this job's nor an earlier one's.
  void leave_out(const std::string& name);

  /// Puts every file in its place. Throws std::runtime_error.
  void commit();

 private:
  std::filesystem::path folder_, staging_;
  bool created_ = false;
  std::vector<std::string> added_, left_out_;
};

/// Writes `content` into a new file and makes sure that it arrived: on a full disk the last bytes fail when the file is
/// closed. Throws std::runtime_error.
void write_text(const std::filesystem::path& file, const std::string& content);

}  // namespace train_lm
