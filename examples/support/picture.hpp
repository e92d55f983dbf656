// SPDX-License-Identifier: Apache-2.0
// Draws a PNG with gnuplot. A picture is an extra: where gnuplot is absent or fails, the answer is a sentence to warn
// with.
#pragma once

#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <spawn.h>
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

/// Runs gnuplot on a script without a shell in between, so that no path needs its quoting. Its exit status; -1: no
/// gnuplot.
inline int gnuplot(const std::string& script) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  char name[] = "gnuplot";
  std::string path = script;
  char* arguments[] = {name, path.data(), nullptr};
  pid_t child = 0;
  const int refused = posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) return -1;
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
  return WEXITSTATUS(status) == 127 ? -1 : WEXITSTATUS(status);
}

}  // namespace detail

/// Draws `body` (gnuplot commands: titles, data blocks, plot) into the file `png`. Empty when done, else what to warn
/// with.
inline std::string draw(const std::string& png, const std::string& body, int width = 1200, int height = 700) {
  const std::string script = png + ".gnuplot";
  const std::string size = std::to_string(width) + "," + std::to_string(height);
  std::ofstream file(script);
  file << "if (strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal pngcairo noenhanced size " << size
       << " font 'sans,11'\n"
       << "if (!strstrt(GPVAL_TERMINALS, 'pngcairo')) set terminal png size " << size << "\n"
       << "set output " << quoted(png) << "\n"
       << body << "\nunset output\n";
  file.close();
  const int status = file ? detail::gnuplot(script) : 1;
  std::error_code ignored;
  std::filesystem::remove(script, ignored);
  if (status == 0) return {};
  std::filesystem::remove(png, ignored);
  return status < 0 ? "no picture: gnuplot is not installed" : "no picture: gnuplot failed on " + png;
}

}  // namespace picture
