// SPDX-License-Identifier: Apache-2.0
// Draws a PNG with gnuplot. A picture is an extra: where gnuplot is absent or fails, the answer is a sentence to warn
// with.
#pragma once

#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace picture {

/// A string as gnuplot reads it between single quotes.
inline std::string quoted(const std::string& s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

namespace detail {

struct outcome {
  int status;            ///< gnuplot's exit status; -1: no gnuplot
  std::string messages;  ///< what it said on standard error
};

/// Runs gnuplot on a script without a shell in between, so that no path needs its quoting.
inline outcome gnuplot(const std::string& script) {
  int channel[2];
  if (pipe(channel) != 0) return {1, "no pipe to gnuplot"};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, channel[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, channel[0]);
  char name[] = "gnuplot";
  std::string path = script;
  char* arguments[] = {name, path.data(), nullptr};
  pid_t child = 0;
  const int refused = posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(channel[1]);
  outcome out{-1, {}};
  char part[4096];
  for (ssize_t n = 0; refused == 0 && (n = ::read(channel[0], part, sizeof part)) > 0;)
    out.messages.append(part, static_cast<std::size_t>(n));
  close(channel[0]);
  if (refused != 0) return out;
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
    out.status = 1;
  else if (WEXITSTATUS(status) != 127)
    out.status = WEXITSTATUS(status);
  return out;
}

/// The first line that places an error ("FILE" line 7: ...), without the script's name; else the first line there is.
inline std::string first_error(const std::string& messages) {
  std::istringstream lines(messages);
  std::string first;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find("\" line "); at != std::string::npos && line.find("warning") == line.npos)
      return line.substr(at + 2);
    if (first.empty() && line.find_first_not_of(" \t^") != std::string::npos) first = line;
  }
  return first.empty() ? "it gave no reason" : first;
}

}  // namespace detail

/// Draws `body` (gnuplot commands: titles, data blocks, plot) into the file `png`. Empty when done, else what to warn
/// with; the warning calls the file `shown`, for a `png` that is only a temporary name.
inline std::string draw(const std::string& png, const std::string& body, int width = 1200, int height = 700,
                        const std::string& shown = {}) {
  const std::string script = png + ".gnuplot";
  const std::string size = std::to_string(width) + "," + std::to_string(height);
  std::ofstream file(script);
  file << "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal pngcairo noenhanced size " << size
       << " font 'sans,11'\n"
       << "if (!strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal png size " << size << "\n"
       << "set output " << quoted(png) << "\n"
       << body << "\nunset output\n";
  file.close();
  const detail::outcome run = file ? detail::gnuplot(script) : detail::outcome{1, "its script cannot be written"};
  std::error_code ignored;
  std::filesystem::remove(script, ignored);
  if (run.status == 0) return {};
  std::filesystem::remove(png, ignored);
  if (run.status < 0) return "no picture: gnuplot is not installed";
  return "no picture: gnuplot failed on " + (shown.empty() ? png : shown) + ": " + detail::first_error(run.messages);
}

}  // namespace picture
